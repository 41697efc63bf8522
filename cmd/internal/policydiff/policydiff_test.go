// SPDX-License-Identifier: Apache-2.0

package policydiff_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/policydiff"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

var now = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func load(t *testing.T, text string) *policy.Matcher {
	t.Helper()
	m, err := policyyaml.Load([]byte(text), policy.Options{HashKey: []byte("test"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const before = `
rules:
  - { name: login, match: { path: /login }, limit_keys: ["ip:address"], algorithm_config: { rate: 5/1m, burst: 5 } }
  - { name: search, match: { path: /search }, limit_keys: ["ip:address"], algorithm_config: { rate: 10/1s, burst: 20 } }
  - { name: writes, match: { method: { not: GET } }, limit_keys: ["ip:address"], algorithm_config: { rate: 1/1s, burst: 3 } }
  - { name: uploads, match: { path: /upload }, limit_keys: ["ip:address"], algorithm_config: { rate: 1/1m, burst: 1 } }
  - { name: tenant, match: { "header:x-api-key": secret-1 }, limit_keys: ["header:x-tenant"], algorithm_config: { rate: 100/1s, burst: 100 } }
`

const after = `
rules:
  - { name: search, match: { path: /search }, limit_keys: ["ip:address"], algorithm_config: { rate: 10/1s, burst: 50 } }
  - { name: uploads, match: { path: /upload }, limit_keys: ["ip:address"], algorithm_config: { rate: 1/1m, burst: 1 } }
  - { name: writes, match: { method: { not: GET } }, limit_keys: ["ip:address"], algorithm_config: { rate: 1/1s, burst: 3 } }
  - { name: report, match: { path: /report }, limit_keys: [], mode: shadow, algorithm_config: { rate: 1/1h, burst: 2, fixed_cost: 2 } }
  - { name: tenant, match: { "header:x-api-key": [secret-1, secret-2] }, limit_keys: ["header:x-tenant"], algorithm_config: { rate: 100/1s, burst: 100 } }
overrides:
  - { id: bot, action: block, match: { ip:address: 192.0.2.7 }, reason: scan, author: kim, expires_at: 2026-06-01T00:00:00Z }
`

const want = `rule search is changed
  burst: 20 → 50: a client may send 50 at once instead of 20
  for example, GET /search from 192.0.2.1
    was limited by search (up to 20 at once, then 10/s, for each ip:address)
    is now limited by search (up to 50 at once, then 10/s, for each ip:address)

rule writes has moved: some of its requests now match uploads first
  for example, POST /upload from 192.0.2.1
    was limited by writes (up to 3 at once, then 1/s, for each ip:address)
    is now limited by uploads (up to 1 at once, then 1/m, for each ip:address)

rule report is added: up to 2 at once, then 1/h, for all requests together, mode shadow
  for example, GET /report from 192.0.2.1
    was not limited
    is now limited by report (up to 2 at once, then 1/h, for all requests together) at a cost of 2 in shadow

rule tenant is changed
  match: header:x-api-key is … → header:x-api-key is …
  for example, GET / from 192.0.2.1 with header:x-api-key=… header:x-tenant=example
    was not limited
    is now limited by tenant (up to 100 at once, then 100/s, for each header:x-tenant)

rule login is removed: up to 5 at once, then 5/m, for each ip:address
  for example, GET /login from 192.0.2.1
    was limited by login (up to 5 at once, then 5/m, for each ip:address)
    is now not limited

override bot is added: block, until 2026-06-01T00:00:00Z
  for example, GET /search from 192.0.2.7
    was limited by search (up to 20 at once, then 10/s, for each ip:address)
    is now blocked by override bot

6 differences between old.yaml and new.yaml
`

func TestRun(t *testing.T) {
	var text, encoded bytes.Buffer
	o := policydiff.Options{Old: load(t, before), New: load(t, after), OldName: "old.yaml", NewName: "new.yaml", Now: now}
	if err := policydiff.Run(&text, o); !errors.Is(err, policydiff.ErrDifferent) || text.String() != want {
		t.Errorf("%v\n--- got\n%s--- want\n%s", err, text.String(), want)
	}
	o.JSON = true
	if err := policydiff.Run(&encoded, o); !errors.Is(err, policydiff.ErrDifferent) {
		t.Error(err)
	}
	var r struct {
		Equal       bool
		Differences []struct {
			Kind, Rule, Text string
			Changes          []struct{ Field, Old, New, Meaning string }
			Example          struct {
				Request  map[string]string
				Old, New struct {
					Limits []struct{ Limit, Words string }
				}
			}
		}
	}
	if err := json.Unmarshal(encoded.Bytes(), &r); err != nil || r.Equal || len(r.Differences) != 6 {
		t.Fatalf("%v\n%s", err, encoded.Bytes())
	}
	d := r.Differences[0]
	if d.Kind != "rule_changed" || d.Rule != "search" || len(d.Changes) != 1 || d.Changes[0].Field != "burst" || d.Example.Request["path"] != "/search" || d.Example.New.Limits[0].Words != "up to 50 at once, then 10/s" {
		t.Errorf("%+v", d)
	}
	if bytes.Contains(encoded.Bytes(), []byte("secret")) {
		t.Errorf("a secret is shown: %s", encoded.Bytes())
	}
}

func TestRun_Equal(t *testing.T) {
	spelled := `{"rules": [{"algorithm_config": {"burst": 20, "rps": 10}, "limit_keys": ["ip:address"], "match": {"path": ["/search"]}, "name": "search"}]}`
	var b bytes.Buffer
	o := policydiff.Options{Old: load(t, "rules: [{ name: search, match: { path: /search }, limit_keys: [\"ip:address\"], algorithm_config: { rate: 600/1m, burst: 20 } }]"), New: load(t, spelled), OldName: "a", NewName: "b", Now: now}
	if err := policydiff.Run(&b, o); err != nil || b.String() != "no difference in decisions: a and b\n" {
		t.Errorf("%v %s", err, b.String())
	}
	b.Reset()
	o.JSON = true
	if err := policydiff.Run(&b, o); err != nil || b.String() != `{"old":"a","new":"b","equal":true,"differences":[]}`+"\n" {
		t.Errorf("%v %s", err, b.String())
	}
}

// A policy of the cookbook differs from all others, and not from itself in JSON.
func TestRun_Cookbook(t *testing.T) {
	files, err := filepath.Glob("../../../examples/cookbook/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %v", files, err)
	}
	opts := policy.Options{HashKey: []byte("test"), Now: now}
	var policies []*policy.Matcher
	for _, file := range files {
		data, err := policyyaml.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := policyyaml.Parse(file, data, opts)
		if err != nil {
			t.Fatal(err)
		}
		text, err := policyyaml.ToJSON(file, data, opts)
		if err != nil {
			t.Fatal(err)
		}
		same, err := policy.Load(text, opts)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := policydiff.Run(&b, policydiff.Options{Old: m, New: same, Now: now}); err != nil {
			t.Errorf("%s: %v\n%s", file, err, b.String())
		}
		policies = append(policies, m)
	}
	for i, old := range policies {
		for j, new := range policies {
			if i == j {
				continue
			}
			var b bytes.Buffer
			if err := policydiff.Run(&b, policydiff.Options{Old: old, New: new, Now: now}); !errors.Is(err, policydiff.ErrDifferent) || !strings.Contains(b.String(), "for example, ") {
				t.Errorf("%s and %s: %v\n%s", files[i], files[j], err, b.String())
			}
		}
	}
}
