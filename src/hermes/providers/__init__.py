"""Model adapters: each speaks one wire format and turns it into `hermes.schema.model`.

`build.build_model` chooses and connects them. Nothing here imports the HTTP client until a request is made.
"""
