"""Tables by name: what every catalog shares. Requests and answers, names, errors, the REST client; no table is opened here.

::

    names.py      table ids: lists of names, and the texts that stand for them
    requests.py   requests and answers of the Lance Namespace specification
    errors.py     its error codes, as this library's exceptions
    locate.py     a name's location, and what may be sent there
    rest.py       the client of a REST catalog

`lance_core.namespace` is the public face, and holds the directory catalog.
"""
