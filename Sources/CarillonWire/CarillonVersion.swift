/// Which Carillon this is, as semantic versioning counts.
package enum CarillonVersion {
    package static let text = "0.1.0"
    /// Of the extension of the socket's protocol: what a client says in its hello, and what may be sent to it.
    package static let ofExtension = 6
}
