// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/store"
)

// A storeTarget calls a store directly, without a policy.
type storeTarget struct {
	stores.Store
	shared bool
	limit  bucket.Limit
	calls  sync.Pool // holds *call
}

// A call holds reusable memory for one decision.
type call struct {
	charges   [1]store.Charge
	snapshots []bucket.Snapshot
}

// openStore opens the store at a URL. All keys have a prefix that is unique to the run.
func openStore(ctx context.Context, o Options) (*storeTarget, error) {
	u, err := storeurl.Parse(o.Target)
	if err != nil {
		return nil, err
	}
	limit, err := o.limit()
	if err != nil {
		return nil, err
	}
	u.File = "" // what a run spends is not saved
	t := &storeTarget{limit: limit, shared: u.Remote()}
	t.calls.New = func() any { return new(call) }
	t.Store, _, err = stores.Open(ctx, u, stores.Options{Private: true})
	return t, err
}

func keyText(key int) string { return fmt.Sprintf("key=%07d", key) }

func (t *storeTarget) take(ctx context.Context, key int) (allowed bool, err error) {
	c := t.calls.Get().(*call)
	defer t.calls.Put(c)
	c.charges[0] = store.Charge{Key: keyText(key), Limit: t.limit, Cost: bucket.Token}
	c.snapshots, allowed, err = t.Store.Take(ctx, c.snapshots[:0], c.charges[:], store.Mode{})
	return allowed, err
}

func (t *storeTarget) close(ctx context.Context) error {
	return errors.Join(t.Clean(ctx), t.Close())
}

func (t *storeTarget) note() string {
	if !t.shared {
		return "the store is in the memory of this process"
	}
	return "this puts load on the store for all its users; the keys of this run have a unique prefix and are removed at the end"
}
