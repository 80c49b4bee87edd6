package main

import (
	"fmt"

	"ackproof/systems"
	"ackproof/systems/reference"
)

// openSystem gives the constructor of a system by its name.
func openSystem(name string) func(systems.Options) (systems.System, error) {
	return func(o systems.Options) (systems.System, error) {
		switch name {
		case "reference":
			c, err := reference.New(o, "")
			if err != nil {
				return nil, err
			}
			return c, nil
		default:
			return nil, fmt.Errorf("there is no system %q", name)
		}
	}
}
