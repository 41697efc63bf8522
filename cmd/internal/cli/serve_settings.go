// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/visible"
)

// failSettings prints every mistake in the settings, each with its place in the file.
func failSettings(std Streams, err error) int {
	mistakes, ok := errors.AsType[config.Errors](err)
	if !ok {
		return failEach(std, exitUsage, "serve", err)
	}
	for _, e := range mistakes {
		failEach(std, exitUsage, "serve", e)
		for line := range strings.Lines(e.Excerpt) {
			fmt.Fprintf(std.Err, "  %s", visible.Lines(line))
		}
	}
	return exitUsage
}
