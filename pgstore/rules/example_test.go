// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
	"log"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// A program decides by the rules in a database, and follows them. The example has no output, because it needs a
// database.
func Example() {
	ctx := context.Background()
	source, err := rules.Open(ctx, "postgres://mete@localhost/limits", rules.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	m, revision, err := source.Load(ctx, policy.Options{})
	if err != nil {
		log.Fatal(err) // one error per line, with its row
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, m, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go source.Watch(ctx, revision, policy.Options{}, func(m *policy.Matcher, revision int64, err error) {
		if err == nil {
			err = limiter.SetPolicy(m)
		}
		if err != nil {
			log.Printf("the rules of revision %d are not in force: %v", revision, err)
		}
	})
}
