// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/internal/follow"
)

func TestMemory_Note(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	var m follow.Memory
	for i, look := range []struct {
		changed bool
		err     error
		want    follow.News
	}{
		{false, nil, follow.NewsNone}, {true, nil, follow.NewsChanged}, {false, nil, follow.NewsNone},
		{false, a, follow.NewsFailed}, {false, a, follow.NewsNone}, {false, b, follow.NewsFailed}, {false, nil, follow.NewsRecovered}, {false, nil, follow.NewsNone},
		{false, b, follow.NewsFailed}, {true, nil, follow.NewsChanged}, {false, nil, follow.NewsNone}, {false, b, follow.NewsFailed},
	} {
		if got := m.Note(look.changed, look.err); got != look.want || m.Failing() != (look.err != nil) {
			t.Errorf("look %d: got %d, failing %t; want %d, %t", i, got, m.Failing(), look.want, look.err != nil)
		}
	}
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		looks := 0
		follow.Every(ctx, time.Second, func() { looks++ })
		if looks != 3 {
			t.Errorf("%d looks in 3.5 s, want 3", looks)
		}
	})
}
