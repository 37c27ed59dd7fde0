"""Settings for Django's own tests, and the runner that records what each test gives. The two databases are those that
already stand on the servers: nothing is created beside them."""

import os
import unittest

import recorder
from django.conf import settings
from django.test.runner import DiscoverRunner


def _database(alias):
    host, port, name = os.environ[f"SUITE_{alias.upper()}"].split()
    return {
        "ENGINE": "django.db.backends.postgresql", "HOST": host, "PORT": port, "USER": os.environ["PGUSER"],
        "PASSWORD": "none", "NAME": name, "TEST": {"NAME": name},
    }


DATABASES = {alias: _database(alias) for alias in ("default", "other")}
SECRET_KEY = "none"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "suite_django.Runner"


class Result(unittest.TextTestResult):
    """A test whose parts fail has one line for each that does."""

    parts_failed = False

    def startTest(self, test):
        self.parts_failed = False
        recorder.begin()
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        if not self.parts_failed:
            recorder.write(test.id(), "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        recorder.write(test.id(), "skipped")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        recorder.write(test.id(), "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        recorder.write(test.id(), "failed")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.parts_failed = True
            self._failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def _failed(self, test, err):
        recorder.write(test.id(), "failed", err[1], recorder.trace(err[1]))


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result

    def setup_databases(self, **options):
        # Its only migration makes the extension pgcrypto, without which no test of the app would run; most do not use it.
        settings.MIGRATION_MODULES = {**settings.MIGRATION_MODULES, "db_functions": None}
        try:
            return super().setup_databases(**options)
        except Exception as error:
            recorder.write(recorder.SETUP, "failed", error, recorder.trace(error))
            raise
