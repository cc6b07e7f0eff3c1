/// Whose users an app shares; nil: it has its own.
package struct RealmBody: Codable, Equatable, Sendable {
    package var realm: String?
    package init(realm: String?) { self.realm = realm }
}
