// SPDX-License-Identifier: Apache-2.0

package opening_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/metehq/mete/internal/opening"
	"github.com/metehq/mete/store"
)

func TestExplain(t *testing.T) {
	failed, away := errors.New("failed"), fmt.Errorf("%w: refused", store.ErrUnavailable)
	for _, tt := range []struct {
		url     string
		invalid error
		err     error
		want    string
	}{
		{"redis://h", nil, failed, "server h:1: failed"},
		{"redis://h", nil, away, "server h:1: " + away.Error() + "; start it, or correct the address"},
		{"redis://u:secret@", failed, failed, `url "redis://…": failed`},
		{"secret", failed, failed, `url without "://": failed`},
	} {
		if got := opening.Explain(tt.url, tt.invalid, "h:1", tt.err); got.Error() != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("%s: got %q, want %q", tt.url, got, tt.want)
		}
	}
}
