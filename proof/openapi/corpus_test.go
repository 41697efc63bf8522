// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// A row is a question to one of the addresses and the status of its answer.
type row struct {
	where, role    string // main or admin; whose token, empty for none
	method, target string
	body           string
	status         int
	fields         []string
}

func (s *service) askRow(t *testing.T, r row) answer {
	t.Helper()
	q := question{base: s.main, method: r.method, target: r.target, body: r.body, fields: r.fields}
	if r.where == "admin" {
		q.base = s.admin
	}
	if r.role != "" {
		q.fields = append([]string{"Authorization", "Bearer " + tokens[r.role]}, q.fields...)
	}
	a := s.ask(t, q)
	if a.status != r.status {
		t.Errorf("%s as %q: %s %s %.300s: %d, want %d\n%.500s", r.where, r.role, r.method, r.target, r.body, a.status, r.status, a.body)
	}
	return a
}

const until = `"reason":"r","author":"kim","expires_at":"2098-01-01T00:00:00Z"`

// The order of corpus matters: spent tokens stay spent.
var corpus = []row{
	// Decisions.
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"k1","path":"//a/%62"},"cost":1.5,"id":"one"}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"k1","path":"//a/%62"},"cost":1.5,"id":"one"}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"k1"},"cost":2}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take?status=429", body: `{"attributes":{"header:x-api-key":"k1"},"cost":2}`, status: 429},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"k1"},"cost":4}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take?status=429", body: `{"attributes":{"header:x-api-key":"k1"},"cost":4}`, status: 429},
	{where: "main", method: "POST", target: "/v1/take?status=200", body: `{"attributes":{}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take?status=429", body: `{"requests":[{"attributes":{}}]}`, status: 400},
	{where: "main", method: "POST", target: "/v1/peek", body: `{"attributes":{"header:x-api-key":"k1"},"cost":2}`, status: 200},
	{where: "main", method: "POST", target: "/v1/peek?status=429", body: `{"attributes":{"header:x-api-key":"k1"},"cost":2}`, status: 429},
	{where: "main", method: "POST", target: "/v1/peek", body: `{"attributes":{}}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-several":"a"},"cost":null,"max_wait":null,"id":null}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-several":"a"},"max_wait":"1m30s"}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-staged":"a"},"cost":2}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-queue":"a"}}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-queue":"a"},"cost":2}`, status: 200}, // and waits
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"path":"/strict"}}`, status: 200},              // lacks an attribute
	{where: "main", method: "POST", target: "/v1/take?status=429", body: `{"attributes":{"path":"/strict"}}`, status: 429},   // lacks an attribute
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"path":"/quiet"},"cost":5}`, status: 200},      // only a shadow rule denies it
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"friend"}}`, status: 200},   // allowed by an override
	{where: "main", method: "POST", target: "/v1/take", body: `{"requests":[{"attributes":{"header:x-api-key":"k2"}},{"attributes":{"header:x-api-key":"k2"},"cost":3}]}`, status: 200},
	{where: "main", method: "POST", target: "/v1/peek", body: `{"requests":[{"attributes":{"ip:address":"2001:db8::1","host":"Example.COM:80","method":"get"}}]}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"k3"}}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"k3"}}`, status: 403},
	{where: "admin", role: "read", method: "POST", target: "/v1/peek", body: `{"attributes":{"header:x-api-key":"k3"}}`, status: 200},

	// Invalid requests.
	{where: "main", method: "POST", target: "/v1/take", body: `{}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `[]`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: ` `, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"costs":1}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"attributes":{}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"path":"/a/%2e%2e/b"}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"ip:address":"example.com"}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"headers:x":"a"}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x":1}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"cost":0}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"cost":0.0001}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"max_wait":"2"}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"max_wait":"25h"}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"cost":0x1}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x":"\ud800"}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x":null,"header:x":"a"}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x":null}}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{},"id":""}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"requests":[]}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: `{"requests":[{"attributes":{}},{}]}`, status: 400},
	{where: "main", method: "POST", target: "/v1/peek", body: `{"requests":[` + strings.Repeat(`{"attributes":{}},`, 100) + `{"attributes":{}}]}`, status: 400},
	{where: "main", method: "POST", target: "/v1/take", body: "{\"attributes\":{\"header:x\":\"\xff\"}}", status: 400},

	// Holds. An ID without an underscore holds nothing.
	{where: "main", method: "POST", target: "/v1/hold", body: `{"attributes":{"header:x-api-key":"k4"},"ttl":"5m","on_expiry":"refund"}`, status: 200},
	{where: "main", method: "POST", target: "/v1/hold", body: `{"attributes":{},"ttl":null,"on_expiry":null}`, status: 200},
	{where: "main", method: "POST", target: "/v1/hold", body: `{"attributes":{},"ttl":"8d"}`, status: 400},
	{where: "main", method: "POST", target: "/v1/settle", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA","cost":0}`, status: 200},
	{where: "main", method: "POST", target: "/v1/settle", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA_0","cost":0.001}`, status: 404},
	{where: "main", method: "POST", target: "/v1/settle", body: `{"hold":"x"}`, status: 400},
	{where: "main", method: "POST", target: "/v1/settle", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA","usage":{"input":812,"output":208},"model":"m"}`, status: 200},
	{where: "main", method: "POST", target: "/v1/settle", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA_0","usage":{"cached":1}}`, status: 409},
	{where: "main", method: "POST", target: "/v1/settle", body: `{"hold":"x","cost":1,"usage":{"input":812}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/settle", body: `{"hold":"x","usage":{"input":1000000001}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/release", body: `{"hold":"x"}`, status: 404},
	{where: "main", method: "POST", target: "/v1/renew", body: `{"hold":"x","for":"1m"}`, status: 404},
	{where: "main", method: "POST", target: "/v1/release", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, status: 200},
	{where: "main", method: "POST", target: "/v1/release", body: `{"hold":""}`, status: 400},
	{where: "main", method: "POST", target: "/v1/renew", body: `{"hold":"x","for":"8d"}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/hold", body: `{"attributes":{}}`, status: 403},
	{where: "admin", role: "read", method: "POST", target: "/v1/settle", body: `{"hold":"x","cost":1}`, status: 403},
	{where: "admin", role: "read", method: "POST", target: "/v1/renew", body: `{"hold":"x","for":"1m"}`, status: 403},
	{where: "admin", role: "read", method: "POST", target: "/v1/release", body: `{"hold":"x"}`, status: 403},
	{where: "admin", role: "operate", method: "POST", target: "/v1/renew", body: `{"hold":"AAAAAAAAAAAAAAAAAAAAAAAAAA","for":"1m"}`, status: 200},

	// Slots. A repeated release does nothing.
	{where: "main", method: "POST", target: "/v1/take", body: slotRequest, status: 200},
	{where: "main", method: "POST", target: "/v1/take?status=429", body: `{"attributes":{"header:x-running":"p"}}`, status: 429},
	{where: "main", method: "POST", target: "/v1/slots/renew", body: slotRequest, status: 200},
	{where: "main", method: "POST", target: "/v1/slots/renew", body: `{"attributes":{}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/slots/renew", body: `{"attributes":{},"slot":"x"}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/slots/renew", body: slotRequest, status: 403},
	{where: "main", method: "POST", target: "/v1/slots/release", body: slotRequest, status: 200},
	{where: "main", method: "POST", target: "/v1/slots/release", body: `{"attributes":{}}`, status: 400},
	{where: "main", method: "POST", target: "/v1/slots/release", body: `{"attributes":{},"slot":"x"}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/slots/release", body: slotRequest, status: 403},

	// By hand.
	{where: "admin", role: "operate", method: "POST", target: "/v1/refund", body: `{"attributes":{"header:x-api-key":"k1"},"cost":1}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/refund", body: `{"requests":[{"attributes":{"header:x-api-key":"k1"},"cost":0.001},{"attributes":{"header:x-api-key":"k2"}}]}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/refund", body: `{}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/refund", body: `{"attributes":{}}`, status: 403},
	{where: "admin", role: "configure", method: "POST", target: "/v1/reset", body: `{"attributes":{"header:x-api-key":"k1"}}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/reset", body: `{"requests":[{"attributes":{"header:x-api-key":"k1"}}]}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/reset", body: `{"attributes":1}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/reset", body: `{"attributes":{}}`, status: 403},

	// Why.
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{"header:x-api-key":"k9"},"cost":4}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{"header:x-several":"b","header:x-staged":"a","header:x-queue":"a","path":"/quiet"},"max_wait":"20h"}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{"path":"/strict","jwt:plan":"free"}}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{"header:x-api-key":"friend"}}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"requests":[{"attributes":{}}]}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{}}`, status: 403, fields: []string{"Sec-Fetch-Site", "cross-site"}},
	{where: "admin", role: "read", method: "POST", target: "/v1/peek", body: `{"attributes":{}}`, status: 403, fields: []string{"Origin", "https://elsewhere.example"}},

	// Denied requests, and the limiter's API.
	{where: "admin", role: "read", method: "GET", target: "/v1/me", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/me?x=1", status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/rules", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/rules?rule=each", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/rules?rule=aech", status: 404},
	{where: "admin", role: "read", method: "GET", target: "/v1/rules?x=1", status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/request", body: `{"text":"GET /x\ncost=2"}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/request", body: `{"text":"curl h --nothing"}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/request", body: `{"text":"GET /x"}`, status: 403, fields: []string{"Sec-Fetch-Site", "cross-site"}},
	{where: "admin", role: "read", method: "GET", target: "/v1/ai", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/ai?key=x", status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/traffic", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/traffic?window=10s", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/traffic?window=2m", status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/traffic/stream", status: 200},
	{where: "admin", role: "read", method: "HEAD", target: "/v1/traffic/stream", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/traffic/stream?x=1", status: 400},
	{where: "admin", role: "operate", method: "GET", target: "/v1/watch?key=queue:x-queue=a", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/watch?key=several/fast:x-several=a", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/watch", status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/watch?key=nothing:a=b", status: 404},
	{where: "admin", role: "read", method: "POST", target: "/v1/play", body: played, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/play", body: `{"lanes":[],"traffic":{"phases":[]}}`, status: 422},
	{where: "admin", role: "read", method: "POST", target: "/v1/play", body: `{"lane":[]}`, status: 400},
	{where: "admin", role: "read", method: "POST", target: "/v1/play", body: played, status: 403, fields: []string{"Sec-Fetch-Site", "cross-site"}},
	{where: "admin", role: "read", method: "GET", target: "/v1/play/presets", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/play/presets?x=1", status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/violations", status: 404},
	{where: "admin", role: "read", method: "GET", target: "/v1/violations.csv", status: 404},
	{where: "admin", role: "read", method: "GET", target: "/v1/violations/histogram", status: 404},

	{where: "admin", role: "read", method: "GET", target: "/v1/top", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/top?kind=denied&rule=each&limit=3&window=30s", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/top?kind=shadow", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/top?kind=near", status: 200},
	{where: "admin", role: "read", method: "HEAD", target: "/v1/top", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/top?limit=0", status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/top?kind=worst", status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/top?rule=aech", status: 404},

	// One bucket.
	{where: "admin", role: "read", method: "GET", target: "/v1/bucket?key=several/fast:x-several=a", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/bucket?key=several/slow:x-several=a", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/bucket?key=queue:x-queue=a", status: 200},
	{where: "admin", role: "operate", method: "HEAD", target: "/v1/bucket?key=staged:x-staged=a", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/bucket?key=each:x-api-key=open", status: 404},
	{where: "admin", role: "operate", method: "GET", target: "/v1/bucket?key=each:~000000000000", status: 404},
	{where: "admin", role: "operate", method: "GET", target: "/v1/bucket?key=", status: 400},
	{where: "admin", role: "operate", method: "GET", target: "/v1/bucket", status: 400},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/reset", body: `{"key":"several/fast:x-several=a","reason":"by mistake"}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/take", body: `{"key":"several/fast:x-several=a","tokens":0.001,"reason":"undo"}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/take", body: `{"key":"queue:x-queue=a","tokens":1000000.5}`, status: 200},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/take", body: `{"key":"queue:x-queue=a","tokens":9007199254740.992}`, status: 400},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/take", body: `{"key":"queue:x-queue=a","tokens":0}`, status: 400},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/take", body: `{"key":"queue:x-queue=a"}`, status: 400},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/take", body: `{"key":"nobody:x=a","tokens":1}`, status: 404},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/reset", body: `{"key":"queue:x-queue=a"}`, status: 400},
	{where: "admin", role: "operate", method: "POST", target: "/v1/bucket/reset", body: `{"key":"nobody:x=a","reason":"r"}`, status: 404},
	{where: "admin", role: "read", method: "POST", target: "/v1/bucket/reset", body: `{"key":"queue:x-queue=a","reason":"r"}`, status: 403},
	{where: "admin", role: "read", method: "POST", target: "/v1/bucket/take", body: `{"key":"queue:x-queue=a","tokens":1}`, status: 403},
	{where: "admin", role: "configure", method: "POST", target: "/v1/rules/reset", body: `{"rule":"several","reason":"the limit was too low"}`, status: 200},
	{where: "admin", role: "configure", method: "POST", target: "/v1/rules/reset", body: `{"rule":"severel","reason":"r"}`, status: 404},
	{where: "admin", role: "configure", method: "POST", target: "/v1/rules/reset", body: `{"rule":"several"}`, status: 400},
	{where: "admin", role: "configure", method: "POST", target: "/v1/rules/reset", body: `{"rule":"several","reason":"r","from":"x"}`, status: 400},
	{where: "admin", role: "operate", method: "POST", target: "/v1/rules/reset", body: `{"rule":"several","reason":"r"}`, status: 403},
	{where: "admin", role: "read", method: "GET", target: "/v1/activity", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/activity", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/activity?last=3", status: 400},
	{where: "admin", role: "operate", method: "GET", target: "/v1/activity?key=each:", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/activity?key=each:", status: 403},

	// Overrides.
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides", body: `{"id":"b1","action":"block","match":{"header:x-api-key":"k1"},` + until + `}`, status: 200},
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides", body: `{"action":"limit","rules":["each"],"key":"each:x-api-key=open","algorithm_config":{"rps":9,"burst":9},` + until + `}`, status: 422}, // keys are hashed
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides", body: `{"id":"l1","action":"limit","rules":["several"],"match":{"header:x-several":"a"},"limits":[{"name":"fast","algorithm":"token_bucket","rate":"1/10h","burst":99}],` + until + `}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-api-key":"k1"}}`, status: 200},
	{where: "main", method: "POST", target: "/v1/take?status=429", body: `{"attributes":{"header:x-api-key":"k1"}}`, status: 429},
	{where: "main", method: "POST", target: "/v1/take", body: `{"attributes":{"header:x-several":"a"}}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{"header:x-api-key":"k1"}}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{"header:x-several":"a"}}`, status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/bucket?key=several/fast:x-several=a", status: 200}, // with another limit
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides", body: `{"id":"all","action":"shadow",` + until + `}`, status: 403},
	{where: "admin", role: "configure", method: "PUT", target: "/v1/overrides", body: `{"id":"all","action":"shadow",` + until + `}`, status: 200},
	{where: "admin", role: "read", method: "POST", target: "/v1/explain", body: `{"attributes":{"header:x-several":"a"}}`, status: 200},
	{where: "admin", role: "operate", method: "DELETE", target: "/v1/overrides/all?author=kim&reason=over", status: 403},
	{where: "admin", role: "configure", method: "DELETE", target: "/v1/overrides/all?author=kim&reason=over", status: 200},
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides", body: `{"action":"block",` + until + `}`, status: 422},
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides", body: `{"action":"ban","raeson":"x"}`, status: 422},
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides", body: `{"id":`, status: 400},
	{where: "admin", role: "operate", method: "PUT", target: "/v1/overrides?id=x", body: `{}`, status: 400},
	{where: "admin", role: "read", method: "GET", target: "/v1/overrides", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/overrides?audit=0", status: 200},
	{where: "admin", role: "operate", method: "GET", target: "/v1/overrides?key=each:", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/v1/overrides?key=each:", status: 403},
	{where: "admin", role: "read", method: "GET", target: "/v1/overrides?audit=-1", status: 400},
	{where: "admin", role: "operate", method: "DELETE", target: "/v1/overrides/b1?author=kim&reason=over", status: 200},
	{where: "admin", role: "operate", method: "DELETE", target: "/v1/overrides/b1?author=kim&reason=over", status: 404},
	{where: "admin", role: "operate", method: "DELETE", target: "/v1/overrides/in-file?author=kim&reason=over", status: 409},
	{where: "admin", role: "operate", method: "DELETE", target: "/v1/overrides/l1", status: 422},
	{where: "admin", role: "operate", method: "DELETE", target: "/v1/overrides/l1?author=kim&reason=over&force=1", status: 400},

	// The policy.
	{where: "admin", role: "operate", method: "POST", target: "/v1/reload", status: 403},
	{where: "admin", role: "configure", method: "POST", target: "/v1/reload", status: 200},
	{where: "admin", role: "configure", method: "POST", target: "/v1/reload?now=1", status: 400},

	// Gateways.
	{where: "main", method: "GET", target: "/v1/decision", status: 200, fields: asGateway("/g", "X-Api-Key", "g1")},
	{where: "main", method: "POST", target: "/v1/decision", status: 200, fields: asGateway("/g", "X-Api-Key", "g1")},
	{where: "main", method: "GET", target: "/v1/decision", status: 200, fields: asGateway("/g", "X-Staged", "g1")},
	{where: "main", method: "GET", target: "/v1/decision", status: 200, fields: asGateway("/g", "X-Api-Key", "g1")},
	{where: "main", method: "GET", target: "/v1/decision", status: 429, fields: asGateway("/g", "X-Api-Key", "g1")},
	{where: "main", method: "HEAD", target: "/v1/decision", status: 429, fields: asGateway("/g", "X-Api-Key", "g1")},
	{where: "admin", method: "GET", target: "/v1/decision", status: 429, fields: asGateway("/g", "X-Api-Key", "g1")},
	{where: "main", method: "GET", target: "/v1/decision", status: 403, fields: asGateway("/strict")},
	{where: "main", method: "GET", target: "/v1/decision", status: 400, fields: asGateway("/a/%2e%2e/b")},
	{where: "main", method: "GET", target: "/v1/decision", status: 400},

	// Health.
	{where: "main", method: "GET", target: "/livez", status: 200},
	{where: "admin", method: "GET", target: "/readyz", status: 200},
	{where: "main", method: "HEAD", target: "/readyz", status: 200},
	{where: "admin", role: "read", method: "GET", target: "/metrics", status: 200},
	{where: "main", method: "GET", target: "/openapi.json", status: 200},
	{where: "main", method: "GET", target: "/openapi.json", status: 304, fields: []string{"If-None-Match", "*"}},

	// Paths that do not exist.
	{where: "main", method: "GET", target: "/", status: 404},
	{where: "main", method: "POST", target: "/v1/takes", status: 404},
	{where: "main", method: "GET", target: "/v1/take", status: 405},
	{where: "main", method: "POST", target: "/livez", status: 405},
	{where: "admin", role: "configure", method: "POST", target: "/v1/overrides", status: 405},
	{where: "admin", role: "configure", method: "GET", target: "/v1/overrides/b1", status: 405},
}

// asGateway describes a client's request of a target, with these header fields.
func asGateway(target string, fields ...string) []string {
	return append([]string{"X-Original-Method", "GET", "X-Original-URI", target, "X-Original-Host", "example.com", "X-Forwarded-For", "192.0.2.9"}, fields...)
}

// askCorpus asks all of it.
func (s *service) askCorpus(t *testing.T) {
	for _, r := range corpus {
		s.askRow(t, r)
	}
	var list struct{ Overrides, Audit []json.RawMessage }
	a := s.askRow(t, row{where: "admin", role: "read", method: "GET", target: "/v1/overrides?audit=100", status: 200})
	if err := json.Unmarshal(a.body, &list); err != nil || len(list.Overrides) != 2 || len(list.Audit) != 9 { // five of overrides, three of buckets, one of a rule
		t.Errorf("the list has %d overrides and %d entries (%v), want 2 and 9", len(list.Overrides), len(list.Audit), err)
	}
}
