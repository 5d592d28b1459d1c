"""RDF as DataFrames: lines read by Catalyst, and what RDFS entails, against the reader and the rules of the embedded engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import augury
from augury.errors import DataError
from augury.knowledge.rdf import read_rdf as read_embedded
from augury.knowledge.rdfs import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE, VOCABULARY, Triple, closure
from augury.model import Iri, order_key
from augury.sources import Skipped
from augury.spark import detect
from augury.spark.triples import entailed, malformed, of_pairs, rdf_facts, read_rdf, value
from tests.spark_session import SPARK, tiny_fixture
from tests.spark_session import spark_fixture as spark_fixture

pytest.importorskip("pyoxigraph")
pytestmark = SPARK

E = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
