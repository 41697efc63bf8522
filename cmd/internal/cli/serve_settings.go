// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/visible"
)

// printMistakes prints every error in the settings, each with its place in the file.
func printMistakes(w io.Writer, command string, mistakes config.Errors) {
	for _, e := range mistakes {
		fmt.Fprintf(w, "%s %s\n", command, visible.Lines(e.Error()))
		for line := range strings.Lines(e.Excerpt) {
			fmt.Fprintf(w, "  %s", visible.Lines(line))
		}
	}
}
