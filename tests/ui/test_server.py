"""The pages behind a real API server: what each route says, and to whom."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.maintenance.library_abort import abort_in
from tests.ui.lake import HOSTILE, MANY_FRAGMENTS, PRIVATE, SECRET
from tests.ui.server import Server

pytestmark = pytest.mark.airflow

MANY = "big.lance"
BROKEN, CROWDED, TORN = "shop/broken.lance", "shop/crowded.lance", "shop/torn.lance"
OTHERS = ("shop/doubtful.lance", "shop/features.lance", "shop/reviews.lance", BROKEN, CROWDED, TORN)
ORDERS, CLICKS, PRODUCTS = "shop/orders.lance", "shop/clicks.lance", "shop/products.lance"


def routes() -> list[tuple[str, str]]:
    """(method, path) of every route, as the front end calls it."""
    return [
        ("GET", "api/me"),
        ("GET", "api/tables"),
        *(
            ("GET", f"api/tables/{{id}}{part}")
            for part in ("", "/versions", "/schema", "/storage", "/failed", "/doctor", "/rows", "/dags")
        ),
        ("GET", "api/tables/{id}/column?path=id"),
        ("GET", "api/tables/{id}/diff?from=1&to=2"),
        ("POST", "api/tables/{id}/search"),
        ("GET", "api/plan"),
        ("GET", "api/plan/history"),
        ("GET", "api/work?dag_id=shop"),
        ("POST", "api/actions"),
        ("GET", "api/actions/some-run"),
        ("GET", ""),
        ("GET", "static/index.html"),
    ]


def call(server: Server, method: str, path: str, user: str | None) -> Any:
    path = path.format(id=server.tables[ORDERS])
    return server.post(path, {}, user) if method == "POST" else server.get(path, user)


def test_every_route_refuses_anonymous_users_and_users_without_rights(server: Server) -> None:
    for method, path in routes():
        anonymous, nobody = call(server, method, path, None), call(server, method, path, "nobody")
        assert (anonymous.status, anonymous.json()["error"]["code"]) == (401, "not_authenticated"), path
        assert (nobody.status, nobody.json()["error"]["code"]) == (403, "forbidden"), path


def test_the_list_above_is_complete(server: Server) -> None:
    code = """
from airflow_lance.ui.app import create_app
for route in create_app().routes:
    for method in route.methods:
        print(method, route.path)
"""
    known = {(method, re.sub(r"\{\w+\}|some-run|index\.html", "*", path.partition("?")[0])) for method, path in routes()}
    found = set()
    for line in server.python(code).splitlines():
        method, _, path = line.partition(" /")
        found.add((method, re.sub(r"\{[\w:]+\}", "*", path)))
    assert found == known


def test_the_list_has_every_table_worst_first_and_says_what_is_wrong_with_a_source(server: Server) -> None:
    listed = server.get("api/tables", "viewer").json()
    assert [row["name"] for row in listed["tables"][:3]] == [TORN, BROKEN, CLICKS]
    assert {row["name"] for row in listed["tables"]} == {ORDERS, CLICKS, PRODUCTS, *OTHERS, HOSTILE, MANY}
    sources = {source["conn_id"]: source for source in listed["sources"]}
    assert set(sources) == {"lake", "far", "gone"}, "connections of the environment"
    assert sources["lake"]["tables"] == len(server.tables) == 11
    assert sources["gone"]["error"]["code"] == "not_found" and "base_uri" in sources["gone"]["error"]["message"]
    assert listed["tables"][0]["error"]["code"] == "damaged"
    assert sources["far"]["error"]["code"] in ("unreachable", "timeout")
    clicks = next(row for row in listed["tables"] if row["name"] == CLICKS)
    assert clicks["num_rows"] + clicks["num_deleted_rows"] == 1000
    assert {part["code"] for part in clicks["health"]["parts"]} >= {"fragments", "deleted-rows", "unindexed-rows"}
    assert (len(clicks["writes"]), sum(clicks["writes"])) == (24, clicks["num_versions"])
    assert clicks["next"] is not None


def test_health_is_about_files_or_says_that_they_were_not_checked(server: Server) -> None:
    listed = server.get("api/tables", "viewer").json()
    found = {row["name"]: row["health"] for row in listed["tables"]}
    assert (found[BROKEN]["score"], found[BROKEN]["parts"][0]["code"]) == (0, "damaged-files")
    assert "more than 10 requests" in found[CROWDED]["unchecked"]
    assert [name for name, health in found.items() if health and health["unchecked"]] == [CROWDED]
    assert listed["summary"]["unchecked"] == 1
    page = server.get(f"api/tables/{server.tables[BROKEN]}", "viewer").json()
    assert page["table"]["health"]["score"] == 0
    findings = server.get(f"api/tables/{server.tables[BROKEN]}/doctor", "viewer").json()["findings"]
    assert (findings[0]["code"], findings[0]["severity"]) == ("missing-files", "error")


def test_a_check_that_ends_its_process_is_an_answer_and_the_server_goes_on(server: Server) -> None:
    """The child of the table is stopped while it is idle, asked, and aborted, as a library does that finds a rule broken."""
    path = f"api/tables/{server.tables[CLICKS]}/doctor"
    for idle in _children(server):
        os.kill(idle, signal.SIGKILL)
    while _children(server):
        time.sleep(0.01)
    assert server.get(f"{path}?refresh=true", "viewer").status == 200, "an idle child that is gone is no finding"
    (child,) = _children(server)
    os.kill(child, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.get, f"{path}?deep=true&refresh=true", "viewer")
        while not _has_input(child):
            time.sleep(0.01)
        abort_in(child)
        answer = asked.result()
    assert answer.status == 500
    assert re.search(r"ended with SIGABRT; nothing else was stopped", answer.json()["error"]["message"])
    again = server.get(f"{path}?deep=true&refresh=true", "viewer")
    assert "SIGABRT" in again.json()["error"]["message"], "remembered for a while: nothing is started for it"
    assert child not in _children(server)
    assert server.get(f"{path}?refresh=true", "viewer").status == 200
    assert server.get(f"api/tables/{server.tables[ORDERS]}/doctor?deep=true&refresh=true", "viewer").status == 200


def _children(server: Server) -> set[int]:
    """The processes of this server that check tables."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_check = b"lance_core.maintenance.isolated_child" in (folder / "cmdline").read_bytes()
            if is_check and str(server.home).encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found


def _has_input(pid: int) -> bool:
    """Whether somebody has written to a process that does not read."""
    with Path(f"/proc/{pid}/fd/0").open("rb") as pipe:  # another end of the pipe that it reads
        return bool(select.select([pipe], [], [], 0)[0])


def test_manifests_count_in_the_size(server: Server) -> None:
    listed = server.get("api/tables", "viewer").json()
    for row in listed["tables"]:
        manifests = (server.lake / row["name"] / "_versions").glob("*.manifest")
        assert row["manifest_bytes"] == (None if row["error"] else sum(path.stat().st_size for path in manifests))


def test_a_button_without_a_dag_that_does_it_is_refused_with_the_reason(server: Server) -> None:
    """The DAG of the plan is paused here until a test starts it."""
    rights = server.get("api/me", "op").json()["rights"]
    assert (rights["actions"], rights["actions_reason"]) == (True, None)
    model = server.call("GET", "/api/v2/dags/lance_maintenance", user="admin").json()
    assert rights["run_plan"] is not model["is_paused"]
    assert ("is paused" in (rights["plan_reason"] or "")) == model["is_paused"]
    assert "paused" not in server.get("api/me", "viewer").json()["rights"]["plan_reason"]


def test_the_table_page(server: Server) -> None:
    page = server.get(f"api/tables/{server.tables[CLICKS]}", "viewer").json()
    assert [column["path"] for column in page["schema"]] == ["id", "price", "day"]
    assert sum(item["fragments"] for item in page["fragments"]["sizes"]) == page["table"]["num_fragments"]
    assert sum(item["fragments"] for item in page["fragments"]["tiers"]) == page["table"]["num_fragments"]
    (index,) = page["indices"]
    assert (index["name"], index["type"], index["columns"], index["sealed"]) == ("day_idx", "BTree", ["day"], True)
    assert 0 < index["coverage"] < 0.2
    staged = {item["identity"]: item for item in page["staged"]}
    assert staged["waiting"]["state"] == "running"
    assert (staged["died"]["state"], staged["died"]["actions"]) == ("expired", ["abort"])
    assert staged["died"]["writer"]["link"] == "dags/shop/runs/manual__1/tasks/load/mapped/4?try_number=1"


def test_tags_and_branches(server: Server) -> None:
    assert server.get(f"api/tables/{server.tables[ORDERS]}").json()["tags"] == [
        {"name": "prod", "version": 1, "branch": None}
    ]
    branches = server.get(f"api/tables/{server.tables[PRODUCTS]}").json()["branches"]
    assert {item["name"]: item["parent_version"] for item in branches} == {"feat/prices": 3, "trial": 4}


def test_a_version_links_to_the_task_that_wrote_it_and_the_task_to_the_version(server: Server) -> None:
    number = server.tables[ORDERS]
    newest = server.get(f"api/tables/{number}/versions", "viewer").json()["versions"][0]
    (writer,) = newest["writers"]
    assert (newest["kind"], newest["rows_changed"]) == ("delete", -5)
    assert (writer["dag_id"], writer["task_id"], writer["hidden"]) == ("shop", "forget", False)
    assert writer["link"].startswith("dags/shop/runs/")
    (work,) = server.get("api/work?dag_id=shop&task_id=forget", "viewer").json()["work"]
    assert (work["state"], work["version"], work["table"], work["identity"]) == (
        "committed", newest["version"], number, writer["identity"],
    )  # fmt: skip


def test_work_that_takes_effect_at_once_is_shown_with_its_run(server: Server) -> None:
    work = server.get("api/work?dag_id=desk", "viewer").json()["work"]
    shown = {item["writer"]["task_id"]: item for item in work}
    assert {name: (item["kind"], item["state"]) for name, item in shown.items()} == {
        "describe": ("describe", "done"),
        "tag": ("tag", "done"),
        "look": ("query", "read"),
        "branch": ("branch", "done"),
        "create": ("create_table", "done"),
        "fill": (None, "committed"),
        "drop": ("drop_table", "done"),
    }
    assert len({item["run"]["run_id"] for item in work}) == 1
    assert {name for name, item in shown.items() if item["gone"]} == {"create", "fill", "drop"}, "the table was dropped"
    assert all(item["table"] is None for item in work if item["gone"])
    assert (shown["branch"]["branch"], shown["branch"]["table"]) == ("trial", server.tables[PRODUCTS])
    newest = server.get(f"api/tables/{server.tables[PRODUCTS]}/versions", "viewer").json()["versions"][0]
    assert [(item["dag_id"], item["task_id"], item["operation"]) for item in newest["writers"]] == [
        ("desk", "describe", "describe")
    ]


def test_a_table_says_what_it_is_and_which_dags_use_it(server: Server) -> None:
    number = server.tables[PRODUCTS]
    row = server.get(f"api/tables/{number}", "viewer").json()["table"]
    assert (row["description"], row["owner"], row["fresh_within"]) == ("what is sold", "shop@example.com", "2days")
    assert (row["freshness"], row["late"]) == ("fresh", None)
    listed = {item["name"]: item for item in server.get("api/tables", "viewer").json()["tables"]}
    assert listed[PRODUCTS]["description"] == "what is sold"
    answer = server.get(f"api/tables/{number}/dags", "viewer").json()
    found = {(item["dag_id"], item["task_id"]): item["does"] for item in answer["dags"]}
    assert found == {
        ("desk", "describe"): "writes", ("desk", "tag"): "writes", ("desk", "branch"): "writes", ("desk", "look"): "reads",
    }  # fmt: skip
    assert answer["complete"]
    hidden = server.get(f"api/tables/{number}/dags", "stranger").json()["dags"]
    assert names_in(hidden) == set()


def test_statistics_of_a_column_need_the_right_to_see_rows(server: Server) -> None:
    path = f"api/tables/{server.tables[PRODUCTS]}/column?path=note.seen"
    assert server.get(path, "viewer").json()["error"]["code"] == "rows_forbidden"
    found = server.get(path, "admin").json()
    assert (found["min"], found["max"], found["distinct"], found["nulls"], found["complete"]) == (0, 299, 300, 0, True)
    unknown = server.get(path.replace("seen", "sehen"), "admin").json()
    assert unknown["error"]["code"] == "invalid" and "note.sehen" in unknown["error"]["message"]


def names_in(value: Any) -> set[str]:
    """The texts under keys that name a DAG, a run, a task or a machine, anywhere in an answer."""
    keys = {"dag_id", "run_id", "task_id", "host", "link", "try_number", "log_url"}
    if isinstance(value, dict):
        own = {str(item) for key, item in value.items() if key in keys and item is not None}
        return own.union(*(names_in(item) for item in value.values())) if value else own
    if isinstance(value, list):
        return set().union(*(names_in(item) for item in value)) if value else set()
    return set()


def test_who_may_not_read_a_dag_sees_nothing_of_its_runs(server: Server) -> None:
    """Every answer about every table and the plan, as the user who may read no DAG here; the same as an admin as a check."""
    paths = [
        f"api/tables/{number}{part}"
        for name, number in server.tables.items()
        for part in ("", "/versions", "/schema", "/failed", "/doctor")
        if name != TORN
    ]
    seen: set[str] = set()
    for path in [*paths, "api/tables", "api/plan", "api/plan/history"]:
        for user in ("stranger", "admin"):
            answer = server.get(path, user)
            assert answer.status == 200, (path, answer.body)
            found = names_in(answer.json())
            if user == "admin":
                seen |= found
            else:
                assert found == set(), (path, found)
    assert {"shop", "forget", "load"} <= seen
    versions = server.get(f"api/tables/{server.tables[ORDERS]}/versions", "stranger").json()["versions"]
    (writer,) = versions[0]["writers"]
    assert (writer["hidden"], writer["dag_id"], writer["run_id"], writer["link"]) == (True, None, None, None)
    staged = server.get(f"api/tables/{server.tables[CLICKS]}", "stranger").json()["staged"]
    assert staged and all(item["writer"]["hidden"] or item["writer"]["dag_id"] is None for item in staged)


def test_who_may_not_read_a_dag_gets_no_work_and_no_button(server: Server) -> None:
    for query in ("dag_id=shop", "dag_id=shop&task_id=forget", "dag_id=shop&run_id=manual__1"):
        refused = server.get(f"api/work?{query}", "stranger")
        assert (refused.status, refused.json()["error"]["code"]) == (403, "forbidden")
        assert b"forget" not in refused.body.replace(query.encode(), b"")
    rights = server.get("api/me", "stranger").json()["rights"]
    assert (rights["actions"], rights["run_plan"]) == (False, False)
    body = {"action": "compact", "table": server.tables[ORDERS], "arguments": {}}
    for request in (body, {"action": "run_plan"}):
        assert server.post("api/actions", request, "stranger").status == 403
    assert server.get("api/actions/some-run", "stranger").status == 403


def test_work_of_another_dag_is_hidden_with_its_attempts(server: Server) -> None:
    """A commit task may publish what tasks of another DAG staged: of these only what the table itself says is shown."""
    code = """
from airflow_lance.ui.answers import with_links
from lance_core.maintenance.facts.work import work_page
from lance_core.io.resolve import resolve_store
import json, sys
(entry,) = work_page(resolve_store(sys.argv[1]), ["died"])
print(json.dumps([entry, with_links(entry, frozenset())]))
"""
    place = str(server.lake / CLICKS)
    plain, hidden = json.loads(server.python(code.replace("sys.argv[1]", repr(place))).splitlines()[-1])
    assert names_in(plain) >= {"shop", "load"}
    assert names_in(hidden) == set()
    assert [attempt["state"] for attempt in hidden["attempts"]] == ["expired"]


def test_diff_schema_and_storage(server: Server) -> None:
    number = server.tables[PRODUCTS]
    diff = server.get(f"api/tables/{number}/diff?from=1&to=3", "viewer").json()
    assert [(item["path"], item["change"]) for item in diff["schema"]] == [("cheap", "added")]
    assert [(item["name"], item["change"]) for item in diff["indices"]] == [("review_idx", "added")]
    schema = server.get(f"api/tables/{number}/schema", "viewer").json()
    assert [(item["version"], item["changes"][0]["path"]) for item in schema["evolution"]] == [(3, "cheap")]
    storage = server.get(f"api/tables/{number}/storage", "viewer").json()
    assert sum(kind["bytes"] for kind in storage["kinds"]) == storage["total_bytes"] > 0
    assert server.get(f"api/tables/{number}/diff?from=1&to=99").status == 404


def test_failed_rows_say_where_and_what_and_who_and_no_word_more(server: Server) -> None:
    number = server.tables["shop/reviews.lance"]
    answer = server.get(f"api/tables/{number}/failed", "viewer")
    found = answer.json()
    assert found["columns"] == [{"name": "loud", "failed": 0}, {"name": "shelf", "failed": 0}, {"name": "mood", "failed": 3}]
    assert [(row["column"], row["fragment"], row["offset"]) for row in found["rows"]] == [("mood", 0, at) for at in range(3)]
    (what,) = {(row["error"], row["status"], row["place"].partition(":")[0], row["tries"]) for row in found["rows"]}
    assert what == ("RefusedError", 422, "lake.py", 1)
    assert PRIVATE.encode() not in answer.body
    assert "digest" not in found["rows"][0]
    assert found["left_out"] == 0 and 0 < found["rows"][0]["when"] <= found["made_at"]
    writer = server.get(f"api/tables/{number}/failed", "admin").json()["rows"][0]["writer"]
    assert (writer["dag_id"], writer["task_id"], writer["link"]) == ("shop", "moods", "dags/shop/runs/manual__1/tasks/moods")
    for path in (f"api/tables/{number}", f"api/tables/{number}/failed"):
        assert b"moods" not in server.get(path, "stranger").body
    none = server.get(f"api/tables/{server.tables[ORDERS]}/failed", "viewer").json()
    assert (none["columns"], none["rows"]) == ([], [])


def test_rows_are_for_those_who_have_that_right(server: Server) -> None:
    number = server.tables[ORDERS]
    refused = server.get(f"api/tables/{number}/rows", "viewer")
    assert (refused.status, refused.json()["error"]["code"]) == (403, "rows_forbidden")
    assert server.post(f"api/tables/{number}/search", {"filter": "id < 9"}, "user").status == 403
    assert server.get("api/me", "viewer").json()["rights"]["rows"] is False
    seen = server.get(f"api/tables/{number}/rows?filter=id%20%3C%209&columns=id", "op").json()
    assert seen["rows"] == [[5], [6], [7], [8]]
    assert server.get(f"api/tables/{number}/rows?filter=nonsense%20here", "op").json()["error"]["code"] == "invalid"


def test_searches(server: Server) -> None:
    number = server.tables[PRODUCTS]
    words = server.post(f"api/tables/{number}/search", {"text": "red shoes", "k": 3, "columns": ["review"]}, "op").json()
    assert [column["name"] for column in words["columns"]] == ["review", "_score"]
    assert all({"red", "shoes"} & set(row[0].split()) for row in words["rows"])
    near = {"vector": [1.0, 1.0, 1.0, 0.5], "k": 2, "columns": ["id", "embedding"], "filter": "id < 50"}
    found = server.post(f"api/tables/{number}/search", near, "op").json()
    assert [row[0] % 24 for row in found["rows"]] == [1, 1]
    assert found["rows"][0][1] == {"kind": "vector", "length": 4, "head": [1.0, 1.0, 1.0, 0.5]}
    assert server.post(f"api/tables/{number}/search", {"vector": [1.0]}, "op").status == 400


def test_names_and_values_are_plain_data(server: Server) -> None:
    number = server.tables[HOSTILE]
    seen = server.get(f"api/tables/{number}/rows", "op")
    assert seen.headers["content-type"].startswith("application/json")
    assert seen.headers["x-content-type-options"] == "nosniff"
    assert seen.json()["rows"][0] == ["<img src=x onerror=alert(2)>", 1]
    assert seen.json()["columns"][0]["name"] == "<script>alert(1)</script>"


def test_no_answer_holds_a_secret(server: Server) -> None:
    """Table by table: the process that looks at one is there for all of its routes, and is not begun for each."""
    of_tables = [(method, path) for method, path in routes() if "{id}" in path]
    asked = [(method, path) for method, path in routes() if "{id}" not in path]
    asked += [(method, path.format(id=number)) for number in server.tables.values() for method, path in of_tables]
    assert len(asked) > len(server.tables) * 10
    for method, path in asked:
        answer = server.get(path) if method == "GET" else server.post(path, {})
        text = answer.body.decode()
        assert SECRET not in text, path
        assert json.dumps(SECRET)[1:-1] not in text, path


def test_buttons_trigger_runs_in_the_name_of_the_user(server: Server) -> None:
    body = {"action": "tag", "table": server.tables[ORDERS], "arguments": {"name": "golden", "version": 1}}
    refused = server.post("api/actions", body, "viewer")
    assert (refused.status, refused.json()["error"]["code"]) == (403, "forbidden")
    made = server.post("api/actions", body, "user")
    assert made.status == 201
    run_id = made.json()["run_id"]
    followed = server.get(f"api/actions/{run_id}".replace("+", "%2B"), "user").json()
    assert (followed["state"], followed["dag_id"]) == ("queued", "lance_actions")
    shown = server.call("GET", f"/api/v2/dags/lance_actions/dagRuns/{run_id}".replace("+", "%2B"), user="admin").json()
    assert shown["triggering_user_name"] == "user"
    assert shown["conf"]["arguments"] == {"name": "golden", "version": 1, "action": "set"}
    assert shown["conf"]["uri"] == str(server.lake / ORDERS)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"action": "drop"}, 400),
        ({"action": "tag", "arguments": {}}, 400),
        ({"action": "restore", "arguments": {"version": "1; rm"}}, 400),
        ({"action": "compact", "arguments": {"uri": "/etc"}}, 400),
        ({"action": "compact", "more": 1}, 400),
        ({"action": "compact", "table": "0" * 16}, 404),
        ({"action": "compact", "table": "/etc/passwd"}, 404),
    ],
    ids=["unknown", "missing", "wrong-type", "unknown-argument", "unknown-key", "unknown-table", "uri-for-id"],
)
def test_a_button_asks_for_nothing_else(server: Server, body: dict[str, Any], status: int) -> None:
    assert server.post("api/actions", {"table": server.tables[ORDERS], **body}, "user").status == status


def test_requests_of_other_sites_are_refused(server: Server) -> None:
    body = {"action": "compact", "table": server.tables[ORDERS]}
    for headers in ({"X-Lance-Request": "0"}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert server.post("api/actions", body, "user", **headers).json()["error"]["code"] == "cross_site"
    form = server.post("api/actions", body, "user", **{"Content-Type": "text/plain"})
    assert form.status in (400, 403)


def test_the_plan_says_what_would_be_done_and_why_not(server: Server) -> None:
    plan = server.get("api/plan", "viewer").json()
    due = {(step["name"], step["action"]) for step in plan["steps"]}
    assert {(CLICKS, "compact"), (CLICKS, "gc"), (MANY, "compact")} <= due
    assert all(item["reason"] for item in plan["skipped"])
    assert plan["budget"]["gb_hours"]["limit"] == 60
    assert plan["plan_dag"]["link"] == "dags/lance_maintenance"


def test_a_table_of_many_fragments_is_read_once(server: Server) -> None:
    number = server.tables[MANY]
    first = server.get(f"api/tables/{number}").json()
    assert first["table"]["num_fragments"] == MANY_FRAGMENTS
    again = server.get(f"api/tables/{number}").json()
    assert again["made_at"] == first["made_at"], "kept for as long as the cache lasts"
    assert len(json.dumps(again)) < 20_000, "the page grows with what is shown, not with the fragments"


def test_airflow_knows_the_plugin_from_its_entry_point(server: Server) -> None:
    listed = server.call("GET", "/api/v2/plugins", user="admin").json()["plugins"]
    (plugin,) = [item for item in listed if item["name"] == "lance"]
    assert {app["destination"] for app in plugin["react_apps"]} == {"nav", "dag", "dag_run", "task", "task_instance"}
    assert {app["name"] for app in plugin["react_apps"]} == {"Lance"}
    assert not server.call("GET", "/api/v2/plugins/importErrors", user="admin").json()["import_errors"]


def test_a_task_has_a_link_to_its_table(server: Server) -> None:
    (work,) = server.get("api/work?dag_id=shop&task_id=forget", "viewer").json()["work"]
    run_id = work["commit"]["run_id"].replace("+", "%2B")
    path = f"/api/v2/dags/shop/dagRuns/{run_id}/taskInstances/forget/links"
    links = server.call("GET", path, user="viewer").json()["extra_links"]
    assert {name for name in links if "ance" in name} == {"Lance table"}
    version = work["version"]
    assert links["Lance table"] == f"/plugin/lance#/table/{server.tables[ORDERS]}/diff/{version - 1}/{version}"
