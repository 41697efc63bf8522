// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"sync"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/follow"
)

// followTokens activates the tokens in files as the files change: a token that has leaked is
// revoked without a restart. An invalid token never replaces a valid one.
func (a *assembly) followTokens(access *access) {
	known := slices.Clone(a.config.AdminTokens)
	var mu sync.Mutex // guards known
	for i := range known {
		if known[i].File == "" {
			continue
		}
		t := &known[i]
		loop := &follow.Loop{
			Interval: fileInterval,
			Look: func(context.Context, bool) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				next, err := config.ReadToken(t.File)
				if err != nil || next == t.Token {
					return false, err
				}
				t.Token = next
				access.know(known)
				return true, nil
			},
			Tell: func(news follow.News, err error) {
				switch news {
				case follow.Failed:
					a.log.Error("token not replaced, old token stays active", "name", t.Name, "err", err)
				case follow.Changed:
					a.log.Info("token replaced", "name", t.Name)
				case follow.Recovered:
					a.log.Info("token readable again, unchanged", "name", t.Name)
				}
			},
		}
		a.add(background("token "+t.Name, loop.Run))
	}
}
