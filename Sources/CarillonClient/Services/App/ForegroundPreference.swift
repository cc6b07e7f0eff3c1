/// Which app should come to the front of the screen. It is reported to the other side, and the library does nothing else with it.
public enum ForegroundPreference: String, Sendable {
    case preferMe
    case preferPeer
    case none
}
