// SPDX-License-Identifier: Apache-2.0

// This program takes orders, and limits them where they are kept: in PostgreSQL,
// each customer may place 3 at once, and one a minute from then on. An order and
// what it costs are one transaction, so an order that fails has spent nothing. Run
// it twice:
//
//	createdb shop
//	go run ./examples/postgres 'postgres://localhost/shop?schema=limits'
//
// All programs with this URL share the buckets. With HASH_KEY in the environment,
// the secret that long names of customers are hashed under is not in PostgreSQL.
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
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
)

const rules = `{"rules": [{"name": "per-customer", "limit_keys": ["customer"],
	"algorithm_config": {"rate": "1/1m", "burst": 3}, "on_store_error": "local"}]}`

const tables = `CREATE TABLE IF NOT EXISTS orders (customer text NOT NULL, item text NOT NULL CHECK (item <> ''))`

// A shop takes orders. It is safe for concurrent use.
type shop struct {
	db      *pgxpool.Pool // the shop's own
	node    *pgstore.Node // has connections of its own
	limiter *mete.Limiter
}

// errTooMany is why an order is refused that would be one too many.
var errTooMany = errors.New("too many orders")

// openShop connects to the database that a URL names.
func openShop(ctx context.Context, url string) (*shop, error) {
	config, _, err := pgstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	s := &shop{}
	if s.db, err = pgstore.Dial(ctx, config); err != nil {
		return nil, err
	}
	if _, err = s.db.Exec(ctx, tables); err == nil {
		s.node, err = pgstore.Open(ctx, url)
	}
	if err == nil {
		s.limiter, err = limit(s.node)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *shop) close() {
	if s.node != nil {
		s.node.Close()
	}
	s.db.Close()
}

// limit puts a guard before the store, and memory behind it: for what is asked
// outside of transactions while PostgreSQL does not answer.
func limit(node *pgstore.Node) (*mete.Limiter, error) {
	// Without a key, all nodes use the one that the store keeps for them.
	matcher, err := policy.Load([]byte(rules), policy.Options{HashKey: []byte(os.Getenv("HASH_KEY"))})
	if err != nil {
		return nil, err
	}
	guarded, err := guard.New(node, guard.Config{})
	if err != nil {
		return nil, err
	}
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	return mete.New(guarded, matcher, mete.Config{Local: local, Nodes: node.Nodes})
}

// order places an order, or does nothing at all. Orders of one customer wait for
// each other from the take to the end of the transaction: what takes long comes
// before it.
func (s *shop) order(ctx context.Context, customer, item string) error {
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
		if err := s.order(ctx, "ada", item); err != nil {
			fmt.Printf("%q: %v\n", item, err)
			continue
		}
		fmt.Printf("%q: ordered\n", item)
	}
}
