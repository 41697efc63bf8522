// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/overrides"
)

// The list has each action of the memory and of the shared audit once, by its time, and is
// bounded.
func TestLog_Merge(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	reset := func(id string, second int) overrides.Entry {
		return overrides.Entry{ID: id, At: at(second), Kind: overrides.EntryReset, Author: "elsewhere", Key: "k"}
	}
	var a Log
	if list := a.merge(nil); len(list) != 0 {
		t.Errorf("%+v, want nothing", list)
	}
	for i := range 3 {
		a.add(record{api.Activity{At: at(10 * i), By: "here"}, fmt.Sprint("e", i)})
	}
	a.add(record{api.Activity{At: at(30), What: "refund", By: "here"}, ""})
	audit := []overrides.Entry{reset("e0", 0), reset("x", 5), {ID: "m", At: at(6), Kind: overrides.EntryMade}, reset("e2", 20), reset("y", 99)}
	var got string
	for _, x := range a.merge(audit) {
		got += fmt.Sprint(x.At.Unix(), x.By, " ")
	}
	if want := "99elsewhere 30here 20here 10here 5elsewhere 0here "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := range MaxActions {
		a.add(record{api.Activity{At: at(100 + i), By: "here"}, ""})
	}
	list := a.merge(append(audit, reset("z", 1000)))
	if len(list) != MaxActions || list[0].By != "elsewhere" || list[1].At != at(99+MaxActions) || list[MaxActions-1].At != at(101) {
		t.Errorf("%d are listed, from %+v to %+v", len(list), list[0], list[len(list)-1])
	}
}
