"""A client in TypeScript, generated from the server's own document: it compiles, asks, and reads a refusal."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.conftest import House

pytestmark = pytest.mark.far

PACKAGES = ("openapi-typescript@7", "openapi-fetch@0.17", "typescript@5")
# Each name and each type below is checked by the compiler: @ts-expect-error is an error on a line without one.
CLIENT = """
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };
type Plan = paths["/api/v1/tables/{table}/plan"]["post"]["requestBody"]["content"]["application/json"];
type Answer = components["schemas"]["AnswerRecord"];

const [address, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });
const ask = (epsilon: string) =>
  client.POST("/api/v1/tables/{table}/questions", {
    params: { path: { table: "pay" } },
    body: { sql: "SELECT COUNT(*) AS n FROM pay", epsilon },
  });

const listed = await client.GET("/api/v1/tables");
const names: string[] = listed.data!.tables.map((each) => each.name);
const asked = await ask("1");
const answer: Answer = asked.data!;
const refused = await ask("99");
const detail: string = refused.error!.detail;
// @ts-expect-error: an answer has no such name
const none = answer.rows;
// @ts-expect-error: an epsilon is text or a whole number, and no other value
const wrong: Plan = { epsilon: true };
console.log(JSON.stringify({ names, columns: answer.columns, reading: answer.facts.reading, detail }));
"""
STRICT = {"strict": True, "module": "nodenext", "target": "es2022", "lib": ["es2022", "dom"], "skipLibCheck": True}


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the generator and the compiler; nothing of them is kept here."""
    folder = tmp_path_factory.mktemp("typescript")
    if shutil.which("npm") is None:
        pytest.skip("npm is not here, so no TypeScript client is generated: Debian has it as nodejs and npm")
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": STRICT, "files": ["client.ts"]}))
    installed = run(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *PACKAGES)
    assert installed.returncode == 0, f"npm cannot fetch {', '.join(PACKAGES)} from its registry:\n{installed.stderr}"
    return folder


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_a_client_that_is_generated_compiles_and_asks(project: Path, house: House, serving: Callable) -> None:
    document = house.send("GET", "/api/v1/openapi.json", token=None)
    (project / "openapi.json").write_bytes(document.content)
    (project / "client.ts").write_text(CLIENT)
    for words in (("openapi-typescript", "openapi.json", "-o", "schema.d.ts"), ("tsc",)):
        made = run(project, f"node_modules/.bin/{words[0]}", *words[1:])
        assert made.returncode == 0, made.stdout + made.stderr
    assert '"application/json": unknown' not in (project / "schema.d.ts").read_text()
    house.desk.ledger.close()
    address, token, _ = serving("--hold", "10ms", "--workers", "1")
    asked = run(project, "node", "client.js", address, token)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    found = json.loads(asked.stdout)
    assert found["names"] == ["visits", "pay"]
    assert found["columns"] == ["n"]
    assert "95 %" in found["reading"]
    assert found["detail"].startswith("the budget")
