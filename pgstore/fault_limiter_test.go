// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
)

// outageRule has more tokens than the test can take on a slow machine, and does not refill during an assertion.
const outageRule = `{"rules": [{"name": "all", "limit_keys": [], "on_store_error": %q, "deadline": "50ms",
	"algorithm_config": {"rate": "1/1000h", "burst": 1000}}]}`

// TestFault_Outage proves that rules apply during an outage within their deadline, and that local spending is
// charged afterwards. No limit denies a request.
func TestFault_Outage(t *testing.T) {
	faulttest.RunParallel(t)
	s := proctest.StartPostgres(t)
	p := at(t, s.URL(), "", pgstore.Config{Durable: true})
	limiters := map[policy.OnStoreError]*mete.Limiter{}
	for how, name := range map[policy.OnStoreError]string{policy.OnStoreErrorOpen: "open", policy.OnStoreErrorClosed: "closed", policy.OnStoreErrorLocal: "local"} {
		m, err := policy.Load(fmt.Appendf(nil, outageRule, name), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		local, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		own := open(t, p.pool, pgstore.Config{Durable: true, Prefix: name + ":", Timeout: faulttest.Patience})
		if limiters[how], err = mete.New(own, m, mete.Config{Local: local}); err != nil {
			t.Fatal(err)
		}
	}
	for how, l := range limiters {
		faulttest.Eventually(t, fmt.Sprint(how, ": the store decides"), func() error { // within the deadline
			d, err := l.Take(t.Context(), mete.Request{})
			if err == nil && (!d.Allowed || d.Degraded) {
				err = fmt.Errorf("before: %+v", d)
			}
			return err
		})
	}
	s.Kill()
	for how, l := range limiters {
		late := 0 // a busy machine is sometimes late
		for range 4 {
			began := time.Now()
			d, err := l.Take(t.Context(), mete.Request{})
			took := time.Since(began)
			if took > faulttest.Within+slack {
				late++
			}
			if late == 4 || took > faulttest.Patience/2 { // half the store's own timeout
				t.Errorf("%v: without the server: decided after %v", how, took)
			}
			if err != nil || d.Allowed != (how != policy.OnStoreErrorClosed) || d.Failure == "" || how == policy.OnStoreErrorClosed && d.Reason != mete.ReasonStoreError {
				t.Errorf("%v: without the server: %+v, %v", how, d, err)
			}
		}
	}
	s.Restart()
	// Four tokens were spent locally: they are charged before the next take.
	for how, left := range map[policy.OnStoreError]bucket.Tokens{policy.OnStoreErrorOpen: 998, policy.OnStoreErrorClosed: 998, policy.OnStoreErrorLocal: 994} {
		faulttest.Eventually(t, fmt.Sprint(how, ": the store decides again"), func() error {
			d, err := limiters[how].Take(t.Context(), mete.Request{})
			switch {
			case err != nil:
				return err
			case d.Failure != "" && d.Allowed && how == policy.OnStoreErrorLocal:
				left-- // it was spent, too
			case d.Failure != "":
			case !d.Allowed || d.Limits()[0].Remaining() > left*bucket.Token:
				t.Errorf("%v: afterwards: %+v, want no more than %d left", how, d, left)
				return nil
			default:
				return nil
			}
			return errors.New("degraded still")
		})
	}
}
