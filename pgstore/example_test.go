// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A server creates its limiter once, and applies the rules of a policy.
func ExampleNewLimiter() {
	ctx := context.Background()
	rules, err := policy.Load([]byte(`{"rules": [{"name": "user", "limit_keys": ["header:x-user"],
		"algorithm_config": {"rps": 10, "burst": 20}, "on_store_error": "local"}]}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := pgstore.NewLimiter(ctx, "postgres://app@db.example.com/app?sslmode=verify-full", rules)
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	decision, err := limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-user": "u1"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decision.Allowed, decision.RetryAfter)
}

// A program can use its existing pool, with tables in a separate schema.
func ExampleNew() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@db.example.com/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := pgstore.Migrate(ctx, pool, "limits"); err != nil {
		log.Fatal(err)
	}
	store, err := pgstore.New(pool, pgstore.Config{Schema: "limits", Durable: true})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
}

// An order and its charge are one transaction: a failed order spends nothing, and an order above the quota is
// never stored.
func ExampleStore_TakeTx() {
	var (
		ctx    context.Context
		pool   *pgxpool.Pool
		limits *pgstore.Store // from New, or the Store of a Node
	)
	quota, err := bucket.NewLimit(1000*bucket.Token, bucket.Rate{Tokens: 1000 * bucket.Token, Per: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	errQuota := errors.New("over the quota")
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (customer) VALUES ($1)", 42); err != nil {
			return err
		}
		// Take late, because other orders of this customer wait from here on.
		charges := []store.Charge{{Key: "orders:42", Limit: quota, Cost: bucket.Token}}
		_, allowed, err := limits.TakeTx(ctx, tx, nil, charges, mete.Mode{})
		if err == nil && !allowed {
			err = errQuota
		}
		return err // rolls back everything
	})
	fmt.Println(err)
}

// A limiter decides within a transaction by its rules.
func ExampleWithTx() {
	var (
		ctx     context.Context
		pool    *pgxpool.Pool
		limiter *mete.Limiter // over a store of this package
	)
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO messages (sender) VALUES ($1)", 42); err != nil {
			return err
		}
		decision, err := limiter.Take(pgstore.WithTx(ctx, tx), mete.Request{Attributes: mete.Attrs{"user:id": "42"}})
		if err == nil && !decision.Allowed {
			err = fmt.Errorf("too many messages: try again in %v", decision.RetryAfter)
		}
		return err
	})
	fmt.Println(err)
}
