import ArgumentParser

/// The option for trusted certificate authorities.
struct AuthorityOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A PEM file of certificate authorities to trust in place of the system's; or CARILLON_CA in the environment.",
            valueName: "file"),
        completion: .file())
    var ca: String?

    /// The path of the file; nil for the authorities of the system.
    var file: String? { ca ?? Environment["CARILLON_CA"] }
}
