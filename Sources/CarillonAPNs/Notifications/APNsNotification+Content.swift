import CarillonBasics

/// What the notification shows and carries.
extension APNsNotification {
    consuming func with(_ change: (inout NotificationFields) -> Void) -> APNsNotification {
        change(&fields)
        return self
    }

    /// The alert's title.
    public consuming func title(_ text: String) -> Self { with { $0.alert.title = .plain(text) } }

    /// A title that the device looks up in the app's strings, with values for its placeholders.
    public consuming func localizedTitle(_ key: String, arguments: [String]? = nil) -> Self {
        with { $0.alert.title = .localized(key: key, arguments: arguments) }
    }

    /// The line beneath the title.
    public consuming func subtitle(_ text: String) -> Self { with { $0.alert.subtitle = .plain(text) } }

    /// A subtitle that the device looks up in the app's strings.
    public consuming func localizedSubtitle(_ key: String, arguments: [String]? = nil) -> Self {
        with { $0.alert.subtitle = .localized(key: key, arguments: arguments) }
    }

    /// The alert's text.
    public consuming func body(_ text: String) -> Self { with { $0.alert.body = .plain(text) } }

    /// A text that the device looks up in the app's strings.
    public consuming func localizedBody(_ key: String, arguments: [String]? = nil) -> Self {
        with { $0.alert.body = .localized(key: key, arguments: arguments) }
    }

    /// The image that is shown while the app starts from the notification.
    public consuming func launchImage(_ name: String) -> Self { with { $0.alert.launchImage = name } }

    /// The title of the alert's action button (legacy; Safari uses it).
    public consuming func action(_ title: String) -> Self { with { $0.alert.action = title } }

    /// The key of the action button's title in the app's strings (legacy).
    public consuming func localizedAction(_ key: String) -> Self { with { $0.alert.actionKey = key } }

    /// What the summary of a group says of this notification, and for how many it counts (legacy).
    public consuming func summary(argument: String, count: Int? = nil) -> Self {
        with {
            $0.alert.summaryArgument = argument
            $0.alert.summaryArgumentCount = count
        }
    }

    /// The number on the app's icon; 0 removes it.
    public consuming func badge(_ number: Int) -> Self { with { $0.badge = number } }

    /// Leaves the number on the app's icon as it is, which is also what happens when nothing is said of it.
    public consuming func noBadgeChange() -> Self { with { $0.badge = nil } }

    /// A sound file of the app, or `default`.
    public consuming func sound(_ name: String) -> Self { with { $0.sound = SoundFields(name: name) } }

    /// A sound as a dictionary, for critical alerts.
    /// - Parameters:
    ///   - name: a sound file of the app, or `default`.
    ///   - volume: from 0 to 1; the system's own when nil.
    public consuming func criticalSound(_ name: String = "default", volume: Double? = nil) -> Self {
        with { $0.sound = SoundFields(name: name, isDictionary: true, isCritical: true, volume: volume) }
    }

    /// Groups notifications of one thread.
    public consuming func threadID(_ id: String) -> Self { with { $0.threadID = id } }

    /// The category whose actions are offered.
    public consuming func category(_ name: String) -> Self { with { $0.category = name } }

    /// Lets the app run in the background as well. The priority stays what it is: 10 for an alert, unless
    /// ``priority(_:)`` says otherwise. Without anything to show, use ``background``, whose priority is 5.
    public consuming func contentAvailable() -> Self { with { $0.isContentAvailable = true } }

    /// Undoes ``contentAvailable()``.
    public consuming func contentUnavailable() -> Self { with { $0.isContentAvailable = false } }

    /// Lets the app's service extension change the notification before it is shown.
    public consuming func mutableContent(_ isMutable: Bool = true) -> Self { with { $0.isMutableContent = isMutable } }

    /// The window that is brought forward.
    public consuming func targetContentID(_ id: String) -> Self { with { $0.targetContentID = id } }

    /// How much the notification may disturb.
    public consuming func interruptionLevel(_ level: APNsInterruptionLevel) -> Self {
        with { $0.interruptionLevel = level.rawValue }
    }

    /// What stands first in a summary: from 0 to 1. For a Live Activity any number that orders activities.
    public consuming func relevanceScore(_ score: Double) -> Self { with { $0.relevanceScore = score } }

    /// What a Focus filter of the app decides by.
    public consuming func filterCriteria(_ criteria: String) -> Self { with { $0.filterCriteria = criteria } }

    /// The values for the placeholders of a website's URL (Safari).
    public consuming func urlArguments(_ values: [String]) -> Self { with { $0.urlArguments = values } }

    /// A key of the app's own beside `aps`. The value is encoded here, with Foundation's defaults; setting a key again
    /// replaces it.
    ///
    /// A value that cannot be encoded is reported when the notification is sent.
    public consuming func custom(_ key: String, _ value: some Encodable & Sendable) -> Self {
        do {
            return setting(NotificationFields.CustomField(key: key, value: try JSONFragment(encoding: value)))
        } catch {
            return setting(NotificationFields.CustomField(key: key, fault: EncodingFault.describe(error, of: value)))
        }
    }

    /// A key of the app's own whose value is JSON already; it is put into the payload as it is.
    ///
    /// A text that is not one JSON value, or that has a number beyond the range of `Double`, is reported when the notification
    /// is sent.
    public consuming func custom(_ key: String, json: String) -> Self {
        let bytes = Array(json.utf8)
        guard JSONFragment.holds(bytes) else {
            let fault = NumberOutOfRange(in: bytes, depth: JSONFragment.depth).map { "\($0.clause)." } ?? "it is not JSON."
            return setting(NotificationFields.CustomField(key: key, fault: fault))
        }
        return setting(NotificationFields.CustomField(key: key, value: JSONFragment(bytes: bytes)))
    }

    private consuming func setting(_ field: NotificationFields.CustomField) -> Self {
        with { fields in
            if let index = fields.custom.firstIndex(where: { $0.key == field.key }) {
                fields.custom[index] = field
            } else {
                fields.custom.append(field)
            }
        }
    }
}
