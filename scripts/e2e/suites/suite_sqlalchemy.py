"""A plugin for pytest that records what each of SQLAlchemy's tests gives."""

import pytest
import recorder


def pytest_runtest_logstart():
    recorder.begin()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        error = call.excinfo.value
        recorder.write(item.nodeid, "failed", error, recorder.trace(error))
    elif report.skipped:
        recorder.write(item.nodeid, "passed" if hasattr(report, "wasxfail") else "skipped")
    elif report.when == "call":
        recorder.write(item.nodeid, "passed")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart():
    # The runner makes the extensions where the server has them. Made by the suite, a server without them would run no test.
    from sqlalchemy.dialects.postgresql import provision

    provision._extensions.clear()
