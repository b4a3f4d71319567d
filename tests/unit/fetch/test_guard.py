"""The address guard by itself, and as the client meets it: with nothing allowed, nothing private is ever dialled."""

from __future__ import annotations

import asyncio
import random
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest

from holdfast.fetch.guard import REFUSAL, AddressGuard
from holdfast.types import FetchProblem
from tests.unit.fetch.servers import OK, answering, ask, fail, open_client, run, serving

FORBIDDEN = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:a9fe:a9fe::",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "4000::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.1",
    "168.63.129.17",
    "172.32.0.1",
    "192.0.1.1",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2001:200::1",
    "2606:2800:220:1:248:1893:25c8:1946",
    "2a00:1450:4001:80b::200e",
    "2003::1",
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not AddressGuard().judge(address)
    if "%" not in address:
        assert not AddressGuard().judge(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_may_be_asked(address: str) -> None:
    assert AddressGuard().judge(address)
    assert AddressGuard().judge(ip_address(address))


@pytest.mark.parametrize("text", ["", "localhost", "2130706433", "127.1", "0x7f000001", "1.1.1.1.", "1.1.1.1/8"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert not AddressGuard([ip_network("0.0.0.0/0")]).judge(text)


def test_what_passes_is_always_global_to_the_standard_library_too() -> None:
    rng = random.Random(7)
    for _ in range(3000):
        for address in (IPv4Address(rng.getrandbits(32)), IPv6Address(rng.getrandbits(128))):
            if AddressGuard().judge(address):
                assert address.is_global
                assert not address.is_multicast


def test_only_the_named_networks_are_opened() -> None:
    guard = AddressGuard([ip_network("10.1.0.0/16"), ip_network("fd00:1::/32")])

    assert guard.judge("10.1.2.3")
    assert guard.judge("fd00:1::5")
    assert guard.judge("8.8.8.8")
    assert not guard.judge("10.2.0.1")
    assert not guard.judge("127.0.0.1")
    assert not guard.judge("::ffff:10.1.2.3")
    assert not guard.judge("fd00:2::5")
    assert not guard.judge("fd00:1::5%eth0")


LITERALS = [
    "http://169.254.169.254/",
    "http://[fd00:ec2::254]/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://100.100.100.200/",
    "http://127.0.0.1:{port}/",
    "http://[::1]:{port}/",
    "http://0/",
    "http://0.0.0.0:{port}/",
    "http://[::]:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "https://127.0.0.1:{port}/",
]


@pytest.mark.parametrize("url", LITERALS)
def test_a_forbidden_literal_is_never_dialled_and_never_repeated(url: str) -> None:
    async def main() -> None:
        async with serving(answering(OK)) as server, open_client(guard=AddressGuard()) as client:
            failed = await fail(client, url.format(port=server.port))
            await asyncio.sleep(0)

            assert failed.problem is FetchProblem.ADDRESS_FORBIDDEN
            assert failed.message == REFUSAL
            assert failed.sent_s is None
            assert server.connections == 0

    run(main())


@pytest.mark.parametrize(
    "url",
    [
        "http://[fe80::1%25eth0]/",
        "http://①②⑦.⓪.⓪.①/",
        "http://１２７.0.0.1/",
        "http://user:pw@127.0.0.1/",
        "http://127.0.0.1\\@example.com/",
        "http://a@b@c/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "ftp://example.com/",
        "HTTP://EXAMPLE.COM/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://example.com:80:80/",
        "http://example.com/#fragment",
        "http://exa mple.com/",
        "http://example.com/\r\nHost: evil",
        "http://example.com/\0",
        "http:///path",
        "http://",
        "http://.example.com/",
        "http://8.8.8.8.8/",
        "http://0x08.8.8.8/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[1.2.3.4]/",
        "http://example.com/" + "a" * 9000,
        "javascript:alert(1)",
        "//example.com/",
        "",
    ],
)
def test_an_address_that_two_parsers_could_read_differently_is_refused(url: str) -> None:
    async def main() -> None:
        async with open_client(guard=AddressGuard()) as client:
            assert (await fail(client, url)).problem is FetchProblem.URL_REFUSED

    run(main())


def test_a_name_that_leads_to_a_private_address_is_refused_without_saying_which(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("10.11.12.13 inside.test\n93.184.216.34 mixed.test\n127.0.0.1 mixed.test\n")

    async def main() -> None:
        async with serving(answering(OK)) as server, open_client(guard=AddressGuard(), hosts=hosts) as client:
            for host in ("inside.test", "mixed.test", "localhost", "sub.localhost"):
                failed = await fail(client, server.url(host=host))
                assert failed.problem is FetchProblem.ADDRESS_FORBIDDEN
                assert failed.message == REFUSAL
            assert server.connections == 0

    run(main())


def test_an_allowed_network_opens_the_way() -> None:
    async def main() -> None:
        async with (
            serving(answering(OK)) as server,
            open_client(guard=AddressGuard([ip_network("127.0.0.1/32")])) as client,
        ):
            assert (await ask(client, server.url())).status == 200
            refused = await fail(client, server.url(host="127.0.0.2"))

            assert refused.problem is FetchProblem.ADDRESS_FORBIDDEN

    run(main())
