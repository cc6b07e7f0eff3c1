/// The version of Carillon, by semantic versioning.
package enum CarillonVersion {
    package static let text = "0.1.0"
    /// The version of Carillon's extension of the socket protocol. A client sends a version in its hello, and the server sends
    /// only frames of this version.
    package static let ofExtension = 6
}
