// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/table"
)

func TestTable(t *testing.T) {
	tab := table.New("NAME", ">COUNT", "NOTE")
	tab.Indent = "  "
	tab.Add("é", "1000000", "")
	tab.Add("longer name", "1", "ok")
	var got strings.Builder
	n, err := tab.WriteTo(&got)
	const want = "" +
		"  NAME           COUNT  NOTE\n" +
		"  é            1000000\n" +
		"  longer name        1  ok\n"
	if got.String() != want || err != nil || int(n) != len(want) {
		t.Errorf("got %d bytes, error %v:\n%s\nwant:\n%s", n, err, got.String(), want)
	}
}
