// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/bench/report"
)

func TestTableAlignsItsColumns(t *testing.T) {
	table := report.Table{{"", "µs"}}
	table.Add("a name", "1")
	table.Add("b", "1000")
	var got strings.Builder
	table.Write(&got)
	want := `|        |   µs |
| ------ | ---: |
| a name |    1 |
| b      | 1000 |
`
	if got.String() != want {
		t.Errorf("Write wrote\n%swant\n%s", &got, want)
	}
}
