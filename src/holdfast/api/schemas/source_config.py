"""The configuration of sources and jobs, field by field, for the OpenAPI document.

`holdfast.sources.config` alone validates input, wherever it comes from; this module only describes it to
clients. A test compares the two.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from holdfast.zimit.flags import JOB_FLAGS, OPTIONS, POLICY


class ExtractConfig(BaseModel):
    """CSS selectors for the parts of a source's pages."""

    model_config = ConfigDict(title="ExtractConfig")

    main: str | None = Field(None, max_length=1000, description="The text itself.")
    title: str | None = Field(None, max_length=1000)
    author: str | None = Field(None, max_length=1000)
    published: str | None = Field(None, max_length=1000)
    remove: list[str] | None = Field(None, description="Selectors of elements that are not part of the text.")


class SourceConfigFields(BaseModel):
    """How a source is crawled. Missing or null fields have their defaults; a job has only fields that differ."""

    seeds: list[str] | None = Field(None, max_length=10_000, description="Where a crawl begins.")
    scope: Literal["page", "prefix", "host", "domain", "any"] | None = Field(
        None, description="How far links are followed from the seeds; host unless set."
    )
    include: list[str] | None = Field(None, description="RE2 patterns of addresses that belong to it besides.")
    exclude: list[str] | None = Field(None, description="RE2 patterns of addresses that do not; they win.")
    max_depth: int | None = Field(None, ge=-1, description="Links away from a seed; -1 is no limit.")
    max_pages: int | None = Field(None, ge=1, le=10**12)
    quota_bytes: int | None = Field(None, ge=1, le=10**18, description="What one run may take from the network.")
    max_time_s: float | None = Field(None, ge=1, le=10**9, description="How long one run may be at work.")
    delay_s: float | None = Field(None, ge=0, le=3600, description="Seconds between two requests to a domain.")
    per_ip_rate: float | None = Field(None, ge=0, le=100_000, description="Requests a second to one IP address.")
    user_agents: list[str] | None = Field(None, description="Taken in turn; ours and the contact are added to each.")
    robots: Literal["obey", "ignore"] | None = Field(None, description="To ignore needs `robots_reason`.")
    robots_reason: str | None = Field(None, max_length=500, description="Kept in the audit log.")
    sitemaps: bool | None = Field(None, description="Whether sitemaps are read for links; true unless set.")
    feeds: bool | None = Field(None, description="Whether feeds are found and polled; false unless set.")
    requisites: bool | None = Field(None, description="Whether what pages embed is fetched; true unless set.")
    strip_trailing_slash: bool | None = Field(None, description="Take /a/ and /a for one page.")
    force_https: bool | None = Field(None, description="Take http and https for one page.")
    tracking: list[str] | None = Field(None, description="Query parameters that do not change a page.")
    allow_ports: list[Annotated[int, Field(ge=1, le=65_535)]] | None = Field(
        None, description="Ports to ask besides the usual ones."
    )
    storage: Literal["warc", "signals"] | None = Field(None, description="Keep everything, or only words and links.")
    backend: Literal["native", "zimit"] | None = Field(None, description="What crawls it.")
    name_template: str | None = Field(None, max_length=120, description="Of runs: {code}-{date:%Y%m%d}.")
    schedule_hint: str | None = Field(None, max_length=200, description="For people.")
    extract: ExtractConfig | None = Field(None, description="Of a source only.")


_OPTIONS = "`tool_options` of a job; None means the tool's default."
_POLICY = "`execution_policy` of a job: the backend, and how to treat saved queues of earlier runs."


def _as_model(name: str, group: str, described: str) -> type[BaseModel]:
    types = {one: dict[str, Any] if flag.job_type is dict else flag.job_type for one, flag in JOB_FLAGS[group].items()}
    given: dict[str, Any] = {one: (kind | None, None) for one, kind in types.items()}
    made: type[BaseModel] = create_model(name, __doc__=described, **given)
    return made


@cache
def source_config_model() -> type[BaseModel]:
    """Return the complete model; built only with the OpenAPI document, which few processes need."""
    below: dict[str, Any] = {
        "passthrough_args": (list[str] | None, None),
        "tool_options": (_as_model("ZimitToolOptions", OPTIONS, _OPTIONS) | None, None),
        "execution_policy": (_as_model("ZimitExecutionPolicy", POLICY, _POLICY) | None, None),
    }
    zimit = create_model("ZimitConfigFields", __doc__="Options of a crawl by zimit.", **below)
    own: dict[str, Any] = {"zimit": (zimit | None, None)}
    made: type[BaseModel] = create_model(
        "SourceConfiguration", __base__=SourceConfigFields, __doc__=SourceConfigFields.__doc__, **own
    )
    return made


class _Typed:
    """Documents the fields of an object without validating the input."""

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(source_config_model().__pydantic_core_schema__)


SourceConfiguration = Annotated[dict[str, Any], _Typed()]
