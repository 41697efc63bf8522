// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// maxAccounts bounds the keys for which a limiter remembers its local costs. Other keys
// begin with a full share, and their costs are never charged to the store:
// [Stats.Excess] counts them.
const maxAccounts = 1 << 16

// A ledger is the accounts of all keys that are, or were, decided locally.
type ledger struct {
	seed  maphash.Seed
	size  atomic.Int64 // of all pages
	pages [64]page
	swept atomic.Uint64 // pages, counted
}

type page struct {
	mu       sync.Mutex
	accounts map[string]*Account
}

// An Account has the local costs of one key that this process has not yet charged to the
// store. The first local decision opens it, and it closes when nothing is left to charge.
// Several accounts are locked in the order of their keys, and a page last.
type Account struct {
	key string

	mu     sync.Mutex // guards the fields below
	closed bool
	nodes  int
	least  bucket.Tokens // the most that was admitted at once
	share  bucket.Limit  // of the local bucket
	known  bucket.Row    // the last known row of the store when the account began

	versions []version // of the limit

	// base is the local bucket as it would be if all that was spent from it had
	// been charged to the store already: the difference is due. Like the local row, it
	// has an account for each version of the limit: see follow.
	base bucket.Row

	spent, charged bucket.Tokens // locally; to the store, or as excess
	settled        bucket.Tokens // the value of spent when the last settled attempt began

	held   bucket.Tokens // for takes that were in flight when it was opened
	number uint64        // of the account, as inFlight counts them

	flight  *flight  // that charges the account; nil for none
	attempt *attempt // that may have reached the store; nil for none
}

// A version of a limit has its charge to the store and its share of the local bucket.
type version struct {
	share bucket.Limit
	whole store.Charge // without a cost

	// need is the least that the store's account must miss, and due the most to charge for
	// that. The store was charged under another version, and this account did not get all of
	// its due. The zero need is none.
	need bucket.State
	due  bucket.Tokens
}

// begun reports whether a has a local bucket: it has, unless the local store
// failed.
func (a *Account) begun() bool { return len(a.versions) > 0 }

// learn notes which version of the limit has a share. It drops versions that have left base,
// except the one that was charged last.
func (a *Account) learn(share *bucket.Limit, c *store.Charge) {
	if v := a.version(share); v != nil {
		v.whole.Limit, v.whole.Shards = c.Limit, c.Shards
		return
	}
	a.versions = slices.DeleteFunc(a.versions, func(v version) bool {
		return v.share != a.share && find(a.base, &v.share) < 0
	})
	a.versions = append(a.versions, version{share: *share, whole: store.Charge{Key: c.Key, Limit: c.Limit, Shards: c.Shards}})
}

// version returns the version that has a share, nil where there is none.
func (a *Account) version(share *bucket.Limit) *version {
	for i := range a.versions {
		if v := &a.versions[i]; v.share == *share {
			return v
		}
	}
	return nil
}

// needy returns a version that needs a further charge, nil where there is none.
func (a *Account) needy() *version {
	for i := range a.versions {
		if v := &a.versions[i]; v.need.Spent > 0 {
			return v
		}
	}
	return nil
}

// part is the share of one node of an amount, rounded up.
func (a *Account) part(amount bucket.Tokens) bucket.Tokens {
	return (amount + bucket.Tokens(a.nodes) - 1) / bucket.Tokens(a.nodes)
}

func (l *ledger) page(key string) *page {
	return &l.pages[maphash.String(l.seed, key)%uint64(len(l.pages))]
}

// find returns the account of a key; nil where there is none.
func (l *ledger) find(key string) *Account {
	p := l.page(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accounts[key]
}

// open returns the account of a key, locked; nil where there are too many.
func (l *ledger) open(key string) *Account {
	p := l.page(key)
	for {
		p.mu.Lock()
		a := p.accounts[key]
		if a == nil {
			if l.size.Load() >= maxAccounts {
				p.mu.Unlock()
				return nil
			}
			if p.accounts == nil {
				p.accounts = map[string]*Account{}
			}
			a = &Account{key: key}
			p.accounts[key] = a
			l.size.Add(1)
		}
		p.mu.Unlock()
		a.mu.Lock()
		if !a.closed {
			return a
		}
		a.mu.Unlock() // it was closed meanwhile, and is gone from the page
	}
}

// close closes an account that is locked.
func (l *ledger) close(a *Account) {
	a.closed = true
	p := l.page(a.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.accounts, a.key)
	l.size.Add(-1)
}

// next returns the accounts of one page, another one with every call.
func (l *ledger) next() []*Account {
	return l.pages[l.swept.Add(1)%uint64(len(l.pages))].list()
}

func (p *page) list() []*Account {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Account, 0, len(p.accounts))
	for _, a := range p.accounts {
		all = append(all, a)
	}
	return all
}
