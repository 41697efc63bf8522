// SPDX-License-Identifier: Apache-2.0

// Package deploy tests examples/deploy without systemd, Docker or Kubernetes. It uses their parsers and types,
// and runs the real program with the files, environment and commands of the examples.
package deploy
