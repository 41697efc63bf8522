// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

const responseRules = `{"rules": [
	{"name": "guesses", "limit_keys": [], "group": "a", "match": {"path": "/login"}, "charge_on": {"status": [401]}, "algorithm_config": {"rate": "3/1h", "burst": 3}},
	{"name": "points", "limit_keys": [], "group": "b", "match": {"path": "/graphql"}, "algorithm_config": {"rate": "100/1h", "burst": 100, "cost_source": "response_header:X-Cost", "default_cost": 10}},
	{"name": "bytes", "limit_keys": [], "group": "c", "match": {"path": "/files"}, "algorithm_config": {"rate": "100/1h", "burst": 100, "charge_on": {"response_bytes": "1KiB"}}}
], "tests": [%s]}`

// Steps have responses, and a request without an outcome keeps its charge.
func TestRun_Responses(t *testing.T) {
	policytest.Check(t, compile(t, strings.Replace(responseRules, "%s", `
		{"name": "only failures count", "request": {"path": "/login"}, "steps": [
			{"times": 20, "status": 200, "expect": "allowed"},
			{"times": 20, "grpc": "OK", "expect": "allowed"},
			{"times": 3, "status": 401, "expect": "allowed"},
			{"status": 200, "expect": {"denied": "guesses"}}]},
		{"name": "codes have a status", "request": {"path": "/login"}, "steps": [
			{"times": 3, "grpc": "UNAUTHENTICATED", "expect": "allowed"},
			{"expect": "denied"}]},
		{"name": "an unknown outcome", "request": {"path": "/login"}, "times": 4, "expect": {"allowed": 3, "denied": 1}},
		{"name": "points of the response", "request": {"path": "/graphql"}, "steps": [
			{"status": 200, "response_headers": {"x-COST": 60.5}, "expect": {"remaining": 90}},
			{"status": 200, "expect": {"remaining": 29}},
			{"expect": {"remaining": 19}}]},
		{"name": "bytes of the response", "request": {"path": "/files"}, "steps": [
			{"status": 200, "bytes": 10240, "expect": {"remaining": 99}},
			{"status": 200, "expect": {"remaining": 89}}]}`, 1)))
}

func TestRead_BadResponses(t *testing.T) {
	m := compile(t, strings.Replace(responseRules, "%s", `{"name": "bad", "steps": [
		{"status": 99}, {"status": 600}, {"status": "401"}, {"grpc": "Unauthenticated"}, {"status": 200, "bytes": -1},
		{"status": 200, "response_headers": []}, {"status": 200, "response_headers": {"x": null}}, {"bytes": 5}]}`, 1))
	_, _, err := policytest.Read(m)
	all, _ := err.(policy.Errors)
	var places []string
	for _, e := range all {
		places = append(places, strings.TrimPrefix(e.Path, "/tests/0/steps/"))
	}
	const want = "0/status 1/status 2/status 3/grpc 4/bytes 5/response_headers 6/response_headers/x 7"
	if got := strings.Join(places, " "); got != want {
		t.Errorf("got errors at %s, want %s:\n%v", got, want, err)
	}
}
