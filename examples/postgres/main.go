// SPDX-License-Identifier: Apache-2.0

// This program limits orders in the same PostgreSQL database that stores them. Each customer can place 3 orders at
// once, then one per minute. An order and its charge are one transaction, so a failed order spends nothing. Run it
// twice:
//
//	createdb shop
//	go run ./examples/postgres 'postgres://localhost/shop?schema=limits'
//
// All programs with this URL share the buckets.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
)

const rules = `{"rules": [{"name": "per-customer", "limit_keys": ["customer"],
	"rate": "1/1m", "burst": 3, "on_store_error": "local"}]}`

const tables = `CREATE TABLE IF NOT EXISTS orders (customer text NOT NULL, item text NOT NULL CHECK (item <> ''))`

// A shop accepts orders. It is safe for concurrent use.
type shop struct {
	db      *pgxpool.Pool // connections of the shop
	limiter *mete.Limiter
}

// errTooMany is the error of an order above the limit.
var errTooMany = errors.New("too many orders")

// openShop connects to the database at a URL.
func openShop(ctx context.Context, url string) (*shop, error) {
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	limiter, err := pgstore.NewLimiter(ctx, url, matcher)
	if err != nil {
		return nil, err
	}
	db, err := openTables(ctx, url)
	if err != nil {
		return nil, errors.Join(err, limiter.Close())
	}
	return &shop{db, limiter}, nil
}

// openTables connects the shop to the limiter's database.
func openTables(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, _, err := pgstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	db, err := pgstore.Dial(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(ctx, tables); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func (s *shop) close() error {
	s.db.Close()
	return s.limiter.Close()
}

// placeOrder places an order, or changes nothing. From the take to the end of the transaction, other orders of the
// same customer wait. Slow work should come before the take.
func (s *shop) placeOrder(ctx context.Context, customer, item string) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		d, err := s.limiter.Take(pgstore.WithTx(ctx, tx), mete.Request{Attributes: mete.Attrs{"customer": customer}})
		if err != nil {
			return err
		}
		if !d.Allowed {
			return fmt.Errorf("%w: try again in %v", errTooMany, d.RetryAfter)
		}
		_, err = tx.Exec(ctx, "INSERT INTO orders (customer, item) VALUES ($1, $2)", customer, item)
		return err
	})
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: postgres URL, such as postgres://localhost/shop?schema=limits")
	}
	ctx := context.Background()
	s, err := openShop(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer s.close()
	for _, item := range []string{"tea", "", "milk", "sugar", "biscuits"} {
		if err := s.placeOrder(ctx, "ada", item); err != nil {
			fmt.Printf("%q: %v\n", item, err)
			continue
		}
		fmt.Printf("%q: ordered\n", item)
	}
}
