// SPDX-License-Identifier: Apache-2.0

// Package deploy checks examples/deploy by what can check it where there is neither
// a systemd that runs, nor Docker, nor Kubernetes: their own parsers and types,
// and the real program with the files, the environment and the commands that
// they would give it. It is all tests.
package deploy
