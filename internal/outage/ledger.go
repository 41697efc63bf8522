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

// maxAccounts bounds the keys with recorded local costs. Other keys start with a full share, and their costs
// are never charged to the store: [Stats.Excess] counts them.
const maxAccounts = 1 << 16

// A ledger holds the accounts of all keys that were decided locally.
type ledger struct {
	seed  maphash.Seed
	size  atomic.Int64 // of all pages
	pages [64]page
	swept atomic.Uint64 // number of pages swept
}

type page struct {
	mu       sync.Mutex
	accounts map[string]*Account
}

// An Account holds the local costs of one key that are not yet charged to the store. The first local decision opens
// it, and it closes when nothing is left to charge. Accounts are locked in the order of their keys, before any page.
type Account struct {
	key string

	mu     sync.Mutex // guards the fields below
	closed bool
	nodes  int
	least  bucket.Tokens // the largest cost admitted in one take
	share  bucket.Limit  // of the local bucket
	known  bucket.Row    // the last known row of the store when the account was opened

	versions []version // of the limit

	// base is the local bucket as it would be if all its costs had been charged to the store: the difference is
	// due. Like the local row, it has an account for each version of the limit: see openVersion.
	base bucket.Row

	spent, charged bucket.Tokens // local costs; costs charged to the store or counted as excess
	settled        bucket.Tokens // the value of spent when the last settled attempt began

	// Costs of takes that were in flight at the opening and were not decided locally since. The local bucket lacks withheld. It had
	// no room for unheld.
	withheld, unheld bucket.Tokens

	number uint64 // of the account, as inFlight counts them

	flight  *flight  // the current charging of the account, or nil
	attempt *attempt // may have reached the store; nil for none
}

// A version is a version of the limit, with its charge to the store and its share of the local bucket.
type version struct {
	share bucket.Limit
	whole store.Charge // without a cost

	// need is the smallest amount that the store's account must lack, and due the largest amount to charge for
	// it. It is set if the store was charged under another version and this account did not get all of its due.
	// A zero need means none.
	need bucket.State
	due  bucket.Tokens
}

// hasBucket reports whether a has a local bucket. It is false only after an error of the local store.
func (a *Account) hasBucket() bool { return len(a.versions) > 0 }

// setVersion records the version with this share. It drops versions that have left base, except the most
// recently charged one.
func (a *Account) setVersion(share *bucket.Limit, c *store.Charge) {
	if v := a.version(share); v != nil {
		v.whole.Limit, v.whole.Shards = c.Limit, c.Shards
		return
	}
	a.versions = slices.DeleteFunc(a.versions, func(v version) bool {
		return v.share != a.share && find(a.base, &v.share) < 0
	})
	a.versions = append(a.versions, version{share: *share, whole: store.Charge{Key: c.Key, Limit: c.Limit, Shards: c.Shards}})
}

func (a *Account) version(share *bucket.Limit) *version {
	for i := range a.versions {
		if v := &a.versions[i]; v.share == *share {
			return v
		}
	}
	return nil
}

func (a *Account) findNeed() *version {
	for i := range a.versions {
		if v := &a.versions[i]; v.need.Spent > 0 {
			return v
		}
	}
	return nil
}

func (a *Account) nodeShare(amount bucket.Tokens) bucket.Tokens {
	return (amount + bucket.Tokens(a.nodes) - 1) / bucket.Tokens(a.nodes)
}

func (l *ledger) page(key string) *page {
	return &l.pages[maphash.String(l.seed, key)%uint64(len(l.pages))]
}

func (l *ledger) find(key string) *Account {
	p := l.page(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accounts[key]
}

// open returns the locked account of a key, or nil if there are too many.
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
		a.mu.Unlock() // another goroutine has closed it and removed it from the page
	}
}

func (l *ledger) close(a *Account) {
	a.closed = true
	p := l.page(a.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.accounts, a.key)
	l.size.Add(-1)
}

func (l *ledger) nextPage() []*Account {
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
