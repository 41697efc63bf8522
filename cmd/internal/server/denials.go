// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/metehq/mete"
)

// A denialHook is told of denials, or of requests that are near a limit.
type denialHook = func(context.Context, *mete.Denial)

// tellAll returns a hook that tells all of these; nil where none is left of them.
func tellAll(hooks ...denialHook) denialHook {
	var told []denialHook
	for _, hook := range hooks {
		if hook != nil {
			told = append(told, hook)
		}
	}
	switch len(told) {
	case 0:
		return nil
	case 1:
		return told[0]
	}
	return func(ctx context.Context, d *mete.Denial) {
		for _, hook := range told {
			hook(ctx, d)
		}
	}
}
