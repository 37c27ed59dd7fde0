# What the programs of checks in Ruby share: a check is a block that gets `see`, which notes what the tool showed.
# tool_checks.py says what the program and its runner tell each other.

require "json"

$stdout.sync = true
CHECKS = {}

def check(name, &block)
  CHECKS[name] = block
end

# SQLSTATE and message of a driver's error, also of one that a mapper has wrapped.
def state(error)
  inner = error.respond_to?(:wrapped_exception) && error.wrapped_exception || error.cause || error
  result = inner.respond_to?(:result) ? inner.result : nil
  code = result && result.error_field(PG::Result::PG_DIAG_SQLSTATE)
  message = result && result.error_field(PG::Result::PG_DIAG_MESSAGE_PRIMARY)
  code ? "#{code} #{message}" : "#{error.class} #{error.message.lines.first}"
end

# Notes the SQLSTATE and the message with which the block must fail.
def refused(see)
  yield
rescue StandardError => error
  see.call("refused", error.class.name, state(error))
else
  raise "no error"
end

def serve
  puts "::" + JSON.generate(CHECKS.keys)
  while (name = $stdin.gets)
    seen = []
    answer = { seen: seen }
    begin
      CHECKS[name.chomp].call(->(*values) { seen << values.map { |value| value.is_a?(String) ? value : value.inspect }.join(" ").force_encoding("UTF-8").scrub })
    rescue StandardError, ScriptError => error
      answer[:error] = state(error).scrub
    end
    puts "\n::" + JSON.generate(answer)
  end
end
