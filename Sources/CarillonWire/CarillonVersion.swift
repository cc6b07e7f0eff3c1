/// Which Carillon this is, as semantic versioning counts.
package enum CarillonVersion {
    package static let text = "0.1.0"
}
