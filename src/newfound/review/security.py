"""Who may talk to the page: this machine's browser, with the token that the command printed.

Any web site that a person visits can send requests to addresses of their own machine. Three things
keep such requests out: the address of the server must be one of ours (``Host``, against names that
point here), the page that sends a request must be ours (``Origin`` and ``Sec-Fetch-Site``), and the
request must carry the token, as a cookie that browsers never send along from other sites.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Largest body of a request in bytes: a split may name thousands of items.
MAX_BODY = 2_000_000
HEADER = "x-newfound-token"

#: Headers of every answer. No script, style or picture comes from anywhere but this server.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Guard:
    """Decides which requests are answered.

    Attributes
    ----------
    port : int
        Port of the server.
    token : str
        The secret; by default a random one.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies do not know ports, and two runs may be under review."""
        return f"newfound_{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names under which the server may be addressed."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def address(self) -> str:
        """The address to open."""
        return f"http://{self.hosts[0]}/?token={self.token}"

    def knows(self, token: str | None) -> bool:
        """Whether this is the token."""
        return token is not None and secrets.compare_digest(token.encode(), self.token.encode())

    def refusal(
        self, method: str, headers: Mapping[str, str], cookies: Mapping[str, str], in_address: bool
    ) -> str | None:
        """Why a request is refused; None if it is answered.

        Parameters
        ----------
        method : str
            Such as GET.
        headers, cookies : mapping of str
            Of the request; names of headers in lower case.
        in_address : bool
            Whether the token is in the address, as it is once, in the printed one.
        """
        if headers.get("host") not in self.hosts:
            return "This address is not the one that `newfound review` printed."
        origin = headers.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            return "Requests from other sites are refused."
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not in_address:
            return "Requests from other sites are refused."
        if not (
            in_address or self.knows(headers.get(HEADER)) or self.knows(cookies.get(self.cookie))
        ):
            return "The token is missing. Open the address that `newfound review` printed."
        if method not in ("GET", "HEAD", "POST"):
            return "Only GET and POST are answered."
        if method == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            return "Decisions are sent as JSON."
        return None
