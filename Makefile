PYTHON ?= python3
VENV ?= .venv
PROTO_DIR := protos
PROTOC_VENV := .venv-protos

.PHONY: protos
protos: ## regenerate lance_core/wire/pb (protoc 25: its output runs on every protobuf runtime from 4.25 on)
	test -x $(PROTOC_VENV)/bin/python || ($(PYTHON) -m venv $(PROTOC_VENV) && $(PROTOC_VENV)/bin/pip install -q "grpcio-tools==1.62.3" setuptools)
	$(PROTOC_VENV)/bin/python protos/generate.py
