# ActiveRecord: migrations and schema statements, queries, associations, transactions, types; Sequel, a smaller mapper.

require "active_record"
require "sequel"
require_relative "harness"

ADDRESS = { adapter: "postgresql", host: "127.0.0.1", port: ENV["PGPORT"].to_i, username: ENV["PGUSER"], password: "none", database: ENV["PGDATABASE"] }
ActiveRecord::Base.default_timezone = :utc

class Author < ActiveRecord::Base
  has_many :books
  validates :name, presence: true
end

class Book < ActiveRecord::Base
  belongs_to :author, optional: true
  scope :cheap, -> { where(price: ...1) }
end

class Thing < ActiveRecord::Base; end

# A check with a connection of its own, and models that know nothing of the tables before.
def record(name)
  check(name) do |see|
    begin
      ActiveRecord::Base.establish_connection(ADDRESS)
      [Author, Book, Thing].each(&:reset_column_information)
      yield see, ActiveRecord::Base.connection
    ensure
      ActiveRecord::Base.remove_connection
    end
  end
end

def library(on)
  on.create_table(:authors) { |t| t.string :name, limit: 40, null: false, index: { unique: true }; t.date :born }
  on.create_table(:books) { |t| t.string :title; t.decimal :price, precision: 10, scale: 2; t.integer :author_id; t.boolean :open, default: true; t.timestamps default: "2024-01-01" }
  %w[Ada Grace Edsger].each_with_index do |name, at|
    author = Author.create!(name: name, born: Date.new(1900 + at, 1, 2))
    at.times { |n| author.books.create!(title: "#{name} #{n}", price: n + 0.5) }
  end
end

def columns(on, table)
  on.columns(table).map { |one| [one.name, one.sql_type, one.null, one.default, one.default_function] }
end

record("connects") { |see, on| see.(on.select_value("select 1"), on.database_version / 10000, on.current_schema, on.encoding) }

record("create table") do |see, on|
  library(on)
  see.(on.tables.sort, on.primary_key("books"), on.table_exists?("nowhere"))
  see.(columns(on, "books"))
  see.(on.indexes("authors").map { |one| [one.name, one.unique, one.columns] })
end

record("change table") do |see, on|
  library(on)
  on.add_column(:books, :pages, :integer, default: 3, null: false)
  on.change_column(:books, :title, :text)
  on.change_column_null(:books, :title, false)
  on.change_column_default(:books, :price, from: nil, to: 2)
  on.rename_column(:books, :open, :available)
  on.add_index(:books, %i[title price], name: "by_title")
  on.rename_index(:books, "by_title", "by_title_and_price")
  on.remove_column(:books, :author_id)
  on.rename_table(:books, :volumes)
  see.(columns(on, "volumes"))
  see.(on.indexes("volumes").map { |one| [one.name, one.columns] })
end

record("check constraints") do |see, on|
  library(on)
  on.add_check_constraint(:books, "price >= 0", name: "price_check")
  see.(on.check_constraints("books").map { |one| [one.name, one.expression] })
  refused(see) { Book.create!(price: -1) }
end

record("foreign keys") do |see, on|
  library(on)
  on.add_foreign_key(:books, :authors, on_delete: :cascade)
  see.(on.foreign_keys("books").map { |one| [one.to_table, one.column, one.on_delete] })
  refused(see) { Book.create!(author_id: 99) }
end

record("partial indexes and ones on expressions") do |see, on|
  library(on)
  on.add_index(:books, :title, where: "price > 1", name: "part")
  on.add_index(:books, "lower(title)", name: "lower")
  see.(on.indexes("books").map { |one| [one.name, one.columns, one.where] }.sort)
end

record("migrations") do |see, on|
  ActiveRecord::Migration.verbose = false
  first = Class.new(ActiveRecord::Migration[6.1]) { def change; create_table(:things) { |t| t.string :name }; end }
  second = Class.new(ActiveRecord::Migration[6.1]) { def change; add_column(:things, :size, :bigint); add_index(:things, :size); end }
  first.new("first", 1).migrate(:up)
  second.new("second", 2).migrate(:up)
  see.(columns(on, "things"))
  second.new("second", 2).migrate(:down)
  see.(columns(on, "things"))
end

record("migrator with its table of versions") do |see, on|
  ActiveRecord::Migration.verbose = false
  ActiveRecord::SchemaMigration.reset_column_information
  ActiveRecord::InternalMetadata.reset_column_information
  step = Class.new(ActiveRecord::Migration[6.1]) { def change; create_table(:things) { |t| t.string :name }; end }
  step.define_singleton_method(:name) { "Step" }
  ActiveRecord::Migrator.new(:up, [step.new("Step", 5)], ActiveRecord::SchemaMigration).migrate
  see.(ActiveRecord::SchemaMigration.all_versions, columns(on, "things"))
end

record("schema dump") do |see, on|
  library(on)
  text = StringIO.new
  ActiveRecord::SchemaDumper.dump(on, text)
  see.(text.string)
end

record("queries") do |see, on|
  library(on)
  see.(Author.where("name like ?", "%a%").or(Author.where(born: Date.new(1902, 1, 1)..)).order(:id).pluck(:name))
  see.(Book.cheap.joins(:author).where(authors: { name: %w[Grace Edsger] }).order(:id).limit(1).offset(1).pluck(:title), Book.where.not(price: nil).exists?, Author.find_by(name: "Nobody"))
  see.(Author.left_joins(:books).group("authors.name").having("count(books.id) > 0").order(:name).count("books.id"), Book.sum(:price), Book.average(:price), Book.maximum(:title), Book.distinct.pluck(:author_id).sort)
end

record("loading of associations") do |see, on|
  library(on)
  see.(Author.includes(:books).order(:id).map { |author| [author.name, author.books.map(&:title).sort] })
  see.(Author.eager_load(:books).where("books.price > 1").map(&:name), Author.preload(:books).first.books.size)
end

record("changes of objects") do |see, on|
  library(on)
  book = Book.first
  book.update!(title: "new", open: false)
  see.(book.reload.title, Book.where(open: true).update_all("price = price + 1"), Book.where(open: false).delete_all, Author.find_by(name: "Ada").destroy.destroyed?)
end

record("insert all and upsert all") do |see, on|
  library(on)
  see.(Author.insert_all([{ name: "a" }, { name: "Ada" }], unique_by: :name, returning: %w[name]).rows)
  see.(Author.upsert_all([{ name: "Ada", born: "1815-12-10" }], unique_by: :name).length, Author.find_by(name: "Ada").born)
end

record("find each in batches") do |see, on|
  library(on)
  see.(Book.find_each(batch_size: 2).map(&:title), Book.in_batches(of: 2).map(&:count))
end

record("transactions") do |see, on|
  library(on)
  Author.transaction { Author.delete_all; raise ActiveRecord::Rollback }
  Author.transaction(isolation: :repeatable_read) { Author.create!(name: "in") }
  see.(Author.count)
end

record("nested transactions") do |see, on|
  library(on)
  Author.transaction do
    Author.transaction(requires_new: true) { Author.delete_all; raise ActiveRecord::Rollback }
    Author.create!(name: "kept")
  end
  see.(Author.count)
end

record("locks") do |see, on|
  library(on)
  Author.transaction { see.(Author.lock("for update skip locked").order(:id).pluck(:name), Author.first.lock!.name, Author.first.with_lock("for no key update") { 1 }) }
end

record("optimistic locks") do |see, on|
  on.create_table(:things) { |t| t.string :name; t.integer :lock_version, default: 0 }
  one = Thing.create!(name: "a")
  two = Thing.find(one.id)
  one.update!(name: "b")
  refused(see) { two.update!(name: "c") }
end

record("errors") do |see, on|
  library(on)
  refused(see) { Author.create!(name: "Ada") }
  refused(see) { on.execute("select * from nowhere") }
  refused(see) { on.execute("insert into authors (id) values (50)") }
  refused(see) { Author.create!(name: "x" * 50) }
end

record("types") do |see, on|
  on.create_table(:things) { |t| t.uuid :code; t.binary :bytes; t.integer :list, array: true; t.text :words, array: true, default: []; t.datetime :at, precision: 6; t.time :time; t.bigint :big; t.float :f }
  Thing.create!(code: "12345678-1234-5678-1234-567812345678", bytes: "\x00\xff".b, list: [1, nil], words: ["a", "b,c"], at: Time.utc(2024, 2, 29, 1, 2, 3.5), time: "01:02:03", big: 2**40, f: 1.5)
  thing = Thing.find_by("list @> array[1]")
  see.(thing.code, thing.bytes.bytes, thing.list, thing.words, thing.at.to_f, thing.time.to_s, thing.big, thing.f)
end

record("json and enum") do |see, on|
  on.create_table(:things) { |t| t.jsonb :body; t.json :raw }
  Thing.create!(body: { a: { b: 1 } }, raw: [1])
  see.(Thing.where("body -> 'a' ->> 'b' = '1'").count, Thing.first.body)
end

record("prepared statements and their cache") do |see, on|
  library(on)
  see.((1..5).map { |id| Author.find_by(id: id)&.name }, on.exec_query("select $1::int + 1 as n", "q", [[nil, 4]]).rows)
  on.add_column(:authors, :age, :integer)
  Author.reset_column_information
  see.(Author.find(1).attributes.keys)
end

record("views and explain") do |see, on|
  library(on)
  on.execute("create view named as select name from authors")
  see.(on.views, on.view_exists?("named"), on.data_sources.sort)
end

record("advisory lock") { |see, on| see.(on.get_advisory_lock(5), on.release_advisory_lock(5)) }

# Sequel.

def sequel(name)
  check("sequel's #{name}") do |see|
    db = Sequel.connect("postgres://#{ENV["PGUSER"]}:none@127.0.0.1:#{ENV["PGPORT"]}/#{ENV["PGDATABASE"]}")
    begin
      db.create_table(:people) { primary_key :id; String :name, size: 40, unique: true, null: false; BigDecimal :height, size: [5, 2]; Date :born }
      db[:people].multi_insert((1..8).map { |n| { name: "name #{n}", height: n / 4.0 } })
      yield see, db
    ensure
      db.disconnect
    end
  end
end

sequel("schema") { |see, db| see.(db.tables, db.schema(:people).map { |name, one| [name, one[:db_type], one[:allow_null], one[:primary_key], one[:type]] }, db.indexes(:people), db.server_version / 10000) }
sequel("datasets") do |see, db|
  people = db[:people]
  see.(people.where { height > 1 }.order(Sequel.desc(:id)).limit(2).select_map(:name), people.where(Sequel.ilike(:name, "NAME 1")).count, people.group_and_count(Sequel.lit("id % 2")).order(:count).map(:count))
  see.(people.where(id: 1).update(name: "x"), people.returning(:id).insert(name: "new").first, people.insert_conflict(target: :name, update: { height: 9 }).insert(name: "x"), people.where(id: 2).delete)
end
sequel("transactions") { |see, db| db.transaction { db[:people].delete; raise Sequel::Rollback }; see.(db[:people].count) }
sequel("savepoints") { |see, db| db.transaction { db.transaction(savepoint: true) { db[:people].delete; raise Sequel::Rollback } }; see.(db[:people].count) }
sequel("changes of a table") { |see, db| db.alter_table(:people) { add_column :age, Integer, default: 3; rename_column :born, :birth; set_column_type :name, String, text: true; add_index :age; drop_column :height }; see.(db.schema(:people).map { |name, one| [name, one[:db_type], one[:default]] }) }
sequel("cursor and copy") { |see, db| see.(db.copy_table(db[:people].select(:id).where { id < 3 }.order(:id), format: :csv), db[:people].order(:id).use_cursor(rows_per_fetch: 3).map(:id)) }

serve
