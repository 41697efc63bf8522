// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestGiveNotice_LastsAsLongAsItIsSet waits for the notice where no address fails.
func TestGiveNotice_LastsAsLongAsItIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, notice := range []time.Duration{0, time.Second, time.Hour} {
			began := time.Now()
			if err := giveNotice(notice, make(chan error)); err != nil {
				t.Errorf("notice of %v: %v", notice, err)
			}
			if passed := time.Since(began); passed != notice {
				t.Errorf("a notice of %v lasted %v", notice, passed)
			}
		}
	})
}
