// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
)

// A limiter records its denials, and a reader lists the denials of the last hour. pgstore.Migrate has created the
// tables.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://mete@localhost/limits")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	config := violations.Config{Key: []byte(os.Getenv("METE_HASH_KEY"))}
	recorder, err := violations.New(pool, config)
	if err != nil {
		log.Fatal(err)
	}
	defer recorder.Close() // writes the remaining rows

	rules, err := policy.Load([]byte(`{"name": "user", "limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 10, "burst": 20}}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, rules, mete.Config{OnDenial: recorder.Record})
	if err != nil {
		log.Fatal(err)
	}
	_, _ = limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"jwt:sub": "alice"}})

	reader, err := violations.NewReader(pool, config)
	if err != nil {
		log.Fatal(err)
	}
	summary, err := reader.Summarize(ctx, violations.Query{Since: time.Now().Add(-time.Hour), User: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("alice was denied %d times\n", summary.Denials)
}
