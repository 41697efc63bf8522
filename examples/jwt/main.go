// SPDX-License-Identifier: Apache-2.0

// This program is a web server with a limit per plan. The plan is a claim of the bearer token, which the program
// verifies with the keys of its issuer. Clients without a valid token share a low limit per address. Try it with the key
// set of your identity provider:
//
//	go run ./examples/jwt https://id.example.com/.well-known/jwks.json https://id.example.com
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// rules has a tier per plan and a limit for addresses without a user. A rule does not apply if a claim is missing.
const rules = `{"rules": [
  {"name": "pro",  "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "pro"}, "rps": 10, "burst": 20},
  {"name": "free", "limit_keys": ["jwt:sub"], "rps": 1, "burst": 5},
  {"name": "nobody", "limit_keys": ["ip:address"], "match": {"jwt:sub": {"not": "*"}},
   "rps": 0.1, "burst": 2}
]}`

// newHandler returns the site behind the limiter.
func newHandler(verifier *jwtclaims.Verifier) (http.Handler, error) {
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	limiter, err := mete.New(store, matcher, mete.Config{})
	if err != nil {
		return nil, err
	}
	limited, err := httplimit.New(limiter, httplimit.Config{Attribute: verifier.Attribute})
	if err != nil {
		return nil, err
	}
	return limited.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") })), nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: jwt KEYSET ISSUER")
	}
	verifier, err := jwtclaims.New(context.Background(), jwtclaims.Config{KeySet: os.Args[1], Issuer: os.Args[2]})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := newHandler(verifier)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8000", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
