"""Buckets of a real S3 server (moto's), which is asked over HTTP: the fixtures are in tests/conftest.py."""

import itertools

import boto3

from evalsite import object_storage

_numbers = itertools.count()


class Bucket:
    """One on the server, as the settings name it."""

    def __init__(self, endpoint):
        self.name, self.endpoint = f"bucket-{next(_numbers)}", endpoint
        access = {"aws_access_key_id": "a", "aws_secret_access_key": "s", "region_name": "us-east-1"}
        self.client = boto3.client("s3", endpoint_url=endpoint, **access)
        self.client.create_bucket(Bucket=self.name)
        self.environment = {
            "S3_BUCKET": self.name,
            "S3_ENDPOINT": endpoint,
            "S3_REGION": "us-east-1",
            "S3_ACCESS_KEY": "a",
            "S3_SECRET_KEY": "s",
        }

    def names(self):
        found = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [entry["Key"] for page in found for entry in page.get("Contents", ())]

    def read(self, name):
        return self.client.get_object(Bucket=self.name, Key=name)["Body"].read()

    def use(self, settings, **changed):
        given = {name.removeprefix("S3_").lower(): value for name, value in (self.environment | changed).items()}
        settings.STORAGES = {**settings.STORAGES, **object_storage.storages(**given)}
        settings.S3_BUCKET = self.name
