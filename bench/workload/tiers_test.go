// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/metehq/mete/bench/workload"
)

func TestTiersShareKeysInOrder(t *testing.T) {
	const users = 250
	keys := workload.Each(users)
	teams, everyone := keys.Teams(), keys.Everyone()
	if teams.Len() != users || everyone.Len() != users {
		t.Fatalf("%d teams and %d times everyone, want %d", teams.Len(), everyone.Len(), users)
	}
	distinct, all := map[string]bool{}, map[string]bool{}
	for i := range users {
		user, team, one := keys.At(i), teams.At(i), everyone.At(i)
		distinct[team], all[one] = true, true
		if one >= team || team >= user {
			t.Errorf("call %d: %q, %q and %q are not in ascending order", i, one, team, user)
		}
	}
	if len(distinct) != 3 || !distinct["team:00000000200"] || len(all) != 1 {
		t.Errorf("teams %v and %v, want 3 teams, of 100 users each, and one of all", distinct, all)
	}
}
