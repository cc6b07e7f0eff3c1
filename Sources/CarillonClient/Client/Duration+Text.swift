extension Duration {
    /// The duration as text for people: in seconds from one second on, and in milliseconds below.
    package var text: String {
        wholeMilliseconds < 1000 ? "\(max(0, wholeMilliseconds)) ms" : "\((wholeMilliseconds + 500) / 1000) s"
    }

    var wholeMilliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
