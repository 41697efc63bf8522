// SPDX-License-Identifier: Apache-2.0

package inpostgres

import (
	"context"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

//go:embed single.sql
var singleSource string

// newSingle is the minimum without batching: one statement, and so one transaction, in one round trip. The
// difference to mete is the gain of batching.
func newSingle(ctx context.Context, at Place, q subject.Quota) (remote.Limiter, error) {
	pool, err := open(ctx, at)
	if err != nil {
		return remote.Limiter{}, err
	}
	token, full := price(q)
	take := func(key string) (bool, error) {
		var spent int64
		err := pool.QueryRow(context.Background(), singleSource, key, token, full).Scan(&spent)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	}
	return remote.Limiter{Caller: remote.FromSingle(take), Close: pool.Close}, nil
}
