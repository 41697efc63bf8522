// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"strings"
	"testing"
)

// Invalid bodies about holds are rejected with the place and the remedy.
func TestHolds_Input(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ path, body, want string }{
		{"/v1/hold", `{}`, `"attributes\" is missing`},
		{"/v1/hold", `{"attributes":{},"ttl":5}`, `not a string`},
		{"/v1/hold", `{"attributes":{},"ttl":"5"}`, `not a duration`},
		{"/v1/hold", `{"attributes":{},"ttl":"0s"}`, `not between 1ms and 168h`},
		{"/v1/hold", `{"attributes":{},"ttl":"8d"}`, `not between 1ms and 168h`},
		{"/v1/hold", `{"attributes":{},"on_expiry":"drop"}`, `on_expiry is \"drop\"`},
		{"/v1/hold", `{"attributes":{},"slot":"3f0c2a9d5b7e41868c1d0e9fa2b4c6d8"}`, `unknown member`},
		{"/v1/hold", `{"requests":[]}`, `requests`},
		{"/v1/hold", `{"attributes":{},"cost":0}`, `the cost is 0`},
		{"/v1/settle", `{"hold":"x"}`, `"cost\" is missing`},
		{"/v1/settle", `{"hold":"x","cost":1,"usage":{"input":1}}`, `"cost\" and \"usage\" are both there; send one of them`},
		{"/v1/settle", `{"hold":"x","cost":1,"model":"m"}`, `"model\" has no effect on a cost`},
		{"/v1/settle", `{"hold":"x","model":"m"}`, `"usage\" is missing`},
		{"/v1/settle", `{"hold":"x","usage":{"input":1},"model":""}`, `the model is empty`},
		{"/v1/settle", `{"hold":"x","usage":{"input":1},"model":1}`, `the model is not a string`},
		{"/v1/settle", `{"hold":"x","usage":812}`, `expected an object`},
		{"/v1/settle", `{"hold":"x","usage":{"input":-1}}`, `input is -1: must be between 0 and 1000000000: send the tokens of one request","pointer":"/usage/input"`},
		{"/v1/settle", `{"hold":"x","usage":{"output":1000000001}}`, `output is 1000000001: must be between`},
		{"/v1/settle", `{"hold":"x","usage":{"output":1.5}}`, `output is \"1.5\": write a whole number`},
		{"/v1/settle", `{"hold":"x","usage":{"output":"208"}}`, `not a number; send whole numbers`},
		{"/v1/settle", `{"hold":"x","usage":{"completion":208}}`, `unknown member; use one of input, cached, cache_write, output, reasoning","pointer":"/usage/completion"`},
		{"/v1/settle", `{"hold":"x","usage":{"input":1,"input":1}}`, `duplicate member`},
		{"/v1/settle", `{"cost":1}`, `"hold\" is missing`},
		{"/v1/settle", `{"hold":"","cost":1}`, `"hold\" is missing or empty`},
		{"/v1/settle", `{"hold":1,"cost":1}`, `not a string`},
		{"/v1/settle", `{"hold":"x","cost":-1}`, `negative`},
		{"/v1/settle", `{"hold":"x","cost":0.0001}`, `decimals`},
		{"/v1/settle", `{"hold":"x","hold":"y","cost":1}`, `hold`},
		{"/v1/release", `{"hold":"x","cost":1}`, `cost`},
		{"/v1/renew", `{"hold":"x"}`, `"for\" is missing`},
		{"/v1/renew", `{"hold":"x","for":"1us"}`, `not between`},
		{"/v1/renew?status=429", `{"hold":"x","for":"1s"}`, `unknown parameter`},
	} {
		a := do(w.main, "POST", tt.path, tt.body)
		if a.Code != 400 || !strings.Contains(a.Body.String(), tt.want) {
			t.Errorf("%s %s: %d %s, want a 400 with %s", tt.path, tt.body, a.Code, a.Body.String(), tt.want)
		}
	}
}
