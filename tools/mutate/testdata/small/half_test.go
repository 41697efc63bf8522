// SPDX-License-Identifier: Apache-2.0

package small

import (
	"strings"
	"testing"
)

func TestHalf(t *testing.T) {
	if got := halfUpTo("", 8, 5); got != 4 {
		t.Errorf("half of 8: got %d", got)
	}
}

func TestSum(t *testing.T) {
	if got := sum(1, 2, 3); got != 6 {
		t.Errorf("got %d", got)
	}
}

func TestJoin(t *testing.T) {
	if got := join("a", "b"); got != "ab" {
		t.Errorf("got %s", got)
	}
}

func TestScript(t *testing.T) {
	if !strings.Contains(script, "n / ") {
		t.Errorf("got %s", script)
	}
}

func TestEven(t *testing.T) {
	if !isEven(6) || isEven(7) {
		t.Error("isEven is wrong")
	}
}
