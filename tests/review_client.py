"""Requests to a server of the review page, without a browser."""

import http.client
import urllib.parse


class Client:
    def __init__(self, server):
        parts = urllib.parse.urlsplit(server.address)
        self.port, self.query = parts.port, parts.query
        self.token = self.query.partition("=")[2]
        self.header = {"X_Newfound_Token": self.token}

    def ask(self, path, method="GET", body=None, **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        if body is not None:
            names.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, names)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content
